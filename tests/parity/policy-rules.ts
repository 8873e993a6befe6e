// The policies of the parity mesh's second run, and the calls that they allow or deny. Each rule is for paths of its
// own, so that one table holds them all; the expected answer is that of the row, whatever proxy gives it.

/** A call below `/v1/<rule>/`. */
export interface PolicyCall {
  readonly name: string;
  readonly isAllowed: boolean;
  readonly method?: string;
  readonly host?: string;
  /** Behind the rule's own path. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Claims of a good token. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

export interface PolicyRule {
  readonly name: string;
  readonly action?: "ALLOW" | "DENY";
  readonly annotations?: Readonly<Record<string, string>>;
  readonly source?: object;
  readonly operation?: object;
  readonly when?: readonly object[];
  readonly calls: readonly PolicyCall[];
}

const yes = (name: string, call: Omit<PolicyCall, "name" | "isAllowed"> = {}): PolicyCall => ({
  name,
  isAllowed: true,
  ...call,
});
const no = (name: string, call: Omit<PolicyCall, "name" | "isAllowed"> = {}): PolicyCall => ({
  name,
  isAllowed: false,
  ...call,
});

/** Calls come from 127.0.0.0/8, through `X-Forwarded-For` at a sidecar where a row says so. */
export const policyRules: readonly PolicyRule[] = [
  { name: "anyone", calls: [yes("anybody"), yes("any method", { method: "DELETE" })] },
  {
    name: "methods",
    operation: { methods: ["GET", "P*", "*ARCH"], notMethods: ["PATCH"] },
    calls: [
      yes("named"),
      yes("prefix", { method: "PUT" }),
      yes("suffix", { method: "SEARCH" }),
      no("not", { method: "PATCH" }),
      no("other", { method: "DELETE" }),
    ],
  },
  {
    name: "hosts",
    operation: { hosts: ["A.Wild.Example.com", "b.*", "*.wild.test"], notHosts: ["b.wild.example.com"] },
    calls: [
      yes("in another case", { host: "a.wILD.example.com" }),
      no("not", { host: "b.wild.example.com" }),
      no("other", { host: "c.wild.example.com" }),
      no("with a port", { host: "a.wild.example.com:81" }),
    ],
  },
  {
    name: "paths",
    operation: { paths: ["/v1/paths/exact", "/v1/paths/prefix/*", "*.suffix"], notPaths: ["/v1/paths/prefix/not"] },
    calls: [
      yes("exact", { path: "exact" }),
      yes("with a query", { path: "exact?a=/v1/paths/other" }),
      no("longer", { path: "exact/" }),
      yes("prefix", { path: "prefix/a/b" }),
      no("not", { path: "prefix/not" }),
      yes("suffix", { path: "a.suffix" }),
      no("the query is no suffix", { path: "a?b=.suffix" }),
      no("dots are resolved before", { path: "prefix/../other" }),
      yes("dots are resolved before, for good", { path: "other/../exact" }),
      no("another case", { path: "EXACT" }),
    ],
  },
  {
    name: "templates",
    operation: { paths: ["/v1/templates/{*}/parts", "/v1/templates/files/{**}"] },
    calls: [
      yes("a segment", { path: "a/parts" }),
      no("two segments", { path: "a/b/parts" }),
      no("no segment", { path: "parts" }),
      yes("any rest", { path: "files/a/b/c" }),
      yes("no rest", { path: "files/" }),
    ],
  },
  {
    name: "headers",
    when: [{ key: "request.headers[X-Role]", values: ["admin", "dev-*", "*-ops"], notValues: ["dev-guest"] }],
    calls: [
      yes("exact", { headers: { "x-role": "admin" } }),
      yes("prefix", { headers: { "x-role": "dev-a" } }),
      yes("suffix", { headers: { "x-role": "night-ops" } }),
      no("not", { headers: { "x-role": "dev-guest" } }),
      no("other", { headers: { "x-role": "Admin" } }),
      no("missing"),
    ],
  },
  {
    name: "presence",
    when: [
      { key: "request.headers[x-present]", values: ["*"] },
      { key: "request.headers[x-absent]", notValues: ["*"] },
    ],
    calls: [
      yes("present", { headers: { "x-present": "a" } }),
      no("absent"),
      no("what must be absent", { headers: { "x-present": "a", "x-absent": "b" } }),
    ],
  },
  { name: "own-address", source: { ipBlocks: ["127.96.0.0/16"] }, calls: [yes("in the range")] },
  {
    name: "other-address",
    source: { ipBlocks: ["127.95.0.0/16", "10.0.0.0/8", "::/0"] },
    calls: [no("out of the ranges")],
  },
  { name: "not-address", source: { notIpBlocks: ["127.96.0.0/16"] }, calls: [no("in the range")] },
  {
    name: "source-ip",
    when: [{ key: "source.ip", values: ["127.0.0.0/8"], notValues: ["127.95.0.0/16"] }],
    calls: [yes("in the range")],
  },
  {
    name: "remote-address",
    source: { remoteIpBlocks: ["127.0.0.0/8"], notRemoteIpBlocks: ["10.1.1.1"] },
    calls: [yes("in the range")],
  },
  { name: "remote-ip", when: [{ key: "remote.ip", notValues: ["127.0.0.0/8"] }], calls: [no("in the range")] },
  { name: "destination-ip", when: [{ key: "destination.ip", values: ["127.0.0.0/8"] }], calls: [yes("in the range")] },
  {
    name: "destination-other",
    when: [{ key: "destination.ip", values: ["10.0.0.0/8"] }],
    calls: [no("out of the range")],
  },
  { name: "ports", operation: { ports: ["3000", "8080"] }, calls: [yes("of the listener")] },
  { name: "not-ports", operation: { notPorts: ["3000", "8080"] }, calls: [no("of the listener")] },
  { name: "destination-port", when: [{ key: "destination.port", values: ["80"] }], calls: [no("of the Service")] },
  { name: "identity", source: { principals: ["*"] }, calls: [no("nobody has one")] },
  { name: "namespace", source: { namespaces: ["parity"] }, calls: [no("nobody has one")] },
  { name: "account", source: { serviceAccounts: ["default"] }, calls: [no("nobody has one")] },
  { name: "not-identity", source: { notPrincipals: ["cluster.local/ns/a/sa/b"] }, calls: [yes("nobody has it")] },
  { name: "server-name", when: [{ key: "connection.sni", values: ["a"] }], calls: [no("there is none")] },
  {
    name: "token",
    source: { requestPrincipals: ["*"] },
    calls: [yes("any", { claims: {} }), no("none")],
  },
  {
    name: "subject",
    source: {
      requestPrincipals: ["https://issuer.test/alice", "https://issuer.test/dev-*"],
      notRequestPrincipals: ["*/dev-guest"],
    },
    calls: [
      yes("exact", { claims: { sub: "alice" } }),
      yes("prefix", { claims: { sub: "dev-bob" } }),
      no("not", { claims: { sub: "dev-guest" } }),
      no("other", { claims: { sub: "bob" } }),
      no("no token"),
    ],
  },
  {
    name: "claims",
    when: [{ key: "request.auth.claims[groups]", values: ["admin", "dev-*"], notValues: ["dev-guest"] }],
    calls: [
      yes("in a list", { claims: { groups: ["a", "admin"] } }),
      yes("a text", { claims: { groups: "dev-a" } }),
      no("not", { claims: { groups: ["admin", "dev-guest"] } }),
      no("other", { claims: { groups: ["adm"] } }),
      no("no text", { claims: { groups: 7 } }),
      no("no claim", { claims: {} }),
    ],
  },
  {
    name: "nested",
    when: [{ key: "request.auth.claims[realm][roles]", values: ["admin"] }],
    calls: [
      yes("there", { claims: { realm: { roles: ["admin"] } } }),
      no("elsewhere", { claims: { roles: ["admin"] } }),
    ],
  },
  {
    name: "scope",
    operation: { methods: ["POST"] },
    when: [{ key: "request.auth.claims[scope]", values: ["catalog.write"] }],
    calls: [
      yes("one of several", { method: "POST", claims: { scope: "openid catalog.write" } }),
      no("part of a word", { method: "POST", claims: { scope: "catalog.writes" } }),
      no("another method", { claims: { scope: "catalog.write" } }),
    ],
  },
  {
    name: "audiences",
    when: [{ key: "request.auth.audiences", values: ["parity"], notValues: ["other"] }],
    calls: [
      yes("named", { claims: {} }),
      yes("among others", { claims: { aud: ["parity", "b"] } }),
      no("with another", { claims: { aud: ["parity", "other"] } }),
    ],
  },
  {
    name: "presenter",
    when: [{ key: "request.auth.presenter", values: ["client"] }],
    calls: [yes("named", { claims: { azp: "client" } }), no("other", { claims: { azp: "clients" } })],
  },
  {
    name: "principal-key",
    when: [{ key: "request.auth.principal", values: ["https://issuer.test/*"] }],
    calls: [yes("of the issuer", { claims: { sub: "a" } }), no("no token")],
  },
  {
    name: "deny-methods",
    action: "DENY",
    operation: { methods: ["DELETE"] },
    calls: [yes("another"), no("named", { method: "DELETE" })],
  },
  // Its calls are spellings of its path: `pathRows`.
  { name: "deny-path", action: "DENY", operation: { paths: ["/v1/deny-path/*"] }, calls: [] },
  {
    name: "deny-without-token",
    action: "DENY",
    source: { notRequestPrincipals: ["*"] },
    calls: [yes("with a token", { claims: {} }), no("without")],
  },
  {
    name: "deny-on-trial",
    action: "DENY",
    annotations: { "istio.io/dry-run": "true" },
    calls: [yes("not enforced")],
  },
  {
    name: "deny-not-identity",
    action: "DENY",
    source: { notPrincipals: ["cluster.local/ns/a/sa/b"] },
    calls: [no("nobody has it")],
  },
  { name: "allow-on-trial", annotations: { "tulle.io/dry-run": "true" }, calls: [no("not enforced")] },
];
