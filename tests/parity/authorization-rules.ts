// What callers with identities, tokens and addresses may do, rule by rule: every field of AuthorizationPolicy and every key of its
// conditions. Each rule is for paths (or, without requests, for a port) of its own, so that one mesh holds the whole table.

export type Caller = "webapp" | "orders" | "blog" | "next" | "nobody";

/** Who calls; `nobody` speaks plain text. */
export const callers: Readonly<Record<Exclude<Caller, "nobody">, readonly [namespace: string, account: string]>> = {
  webapp: ["shop", "webapp"],
  orders: ["shop", "orders"],
  blog: ["blog", "webapp"],
  next: ["shop-next", "webapp"],
};

export interface Request {
  readonly method?: string;
  readonly host?: string;
  /** Behind the rule's own path. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Claims of a good token. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly sni?: string;
  /** The client's address. */
  readonly from?: string;
  readonly port?: number;
}

export interface AuthorizationCall extends Request {
  readonly caller: Caller;
  readonly name: string;
  readonly isAllowed: boolean;
  /** What it gets in place of the policies' word, as `<status> <body>`. */
  readonly refusal?: string;
  /** That no policy allows it, although the row has one that denies. */
  readonly isUnmatched?: boolean;
}

export interface PolicyRule {
  readonly from?: readonly { readonly source: object }[];
  readonly to?: readonly { readonly operation: Readonly<Record<string, readonly string[]>> }[];
  readonly when?: readonly { readonly key: string; readonly [values: string]: unknown }[];
}

export interface Policy {
  readonly action?: "ALLOW" | "DENY" | "AUDIT";
  readonly annotations?: Readonly<Record<string, string>>;
  readonly namespace?: string;
  readonly selector?: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly rules: readonly PolicyRule[];
}

export interface AuthorizationRow {
  /** Also the first segment of its paths. */
  readonly name: string;
  /** Of a TCP Service; requests at `httpPort` when missing. */
  readonly tcpPort?: number;
  readonly policies: readonly Policy[];
  readonly calls: readonly AuthorizationCall[];
}

export const httpPort = 3000;
export const otherHttpPort = 3001;

type Made = (caller: Caller, name?: string, request?: Request) => AuthorizationCall;
const yes: Made = (caller, name = "", request = {}) => ({ caller, name, isAllowed: true, ...request });
const no: Made = (caller, name = "", request = {}) => ({ caller, name, isAllowed: false, ...request });

const everybody: readonly Caller[] = ["webapp", "orders", "blog", "next", "nobody"];
const workloads: readonly Caller[] = ["webapp", "orders", "blog", "next"];

/** Those named get in and all others do not. */
const only = (...allowed: readonly Caller[]): readonly AuthorizationCall[] =>
  everybody.map((caller) => (allowed.includes(caller) ? yes(caller) : no(caller)));

const source = (fields: object): readonly Policy[] => [{ rules: [{ from: [{ source: fields }] }] }];
const operation = (fields: Readonly<Record<string, readonly string[]>>): readonly Policy[] => [
  { rules: [{ to: [{ operation: fields }] }] },
];
const when = (...conditions: NonNullable<PolicyRule["when"]>): readonly Policy[] => [{ rules: [{ when: conditions }] }];
const deny = (rule: PolicyRule): Policy => ({ action: "DENY", rules: [rule] });

const principal = "cluster.local/ns/shop/sa/webapp";
const token = (sub: string): Request => ({ claims: { sub } });
const forwardedFor = (address: string): Request => ({ headers: { "x-forwarded-for": address } });

const sources: readonly AuthorizationRow[] = [
  { name: "principals", policies: source({ principals: [principal] }), calls: only("webapp") },
  {
    name: "principals-prefix",
    policies: source({ principals: ["cluster.local/ns/shop/*"] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "principals-suffix",
    policies: source({ principals: ["*/sa/webapp"] }),
    calls: only("webapp", "blog", "next"),
  },
  { name: "principals-present", policies: source({ principals: ["*"] }), calls: only(...workloads) },
  {
    name: "not-principals",
    policies: source({ notPrincipals: [principal, "*/ns/blog/*"] }),
    // A `*` in the middle stands for itself.
    calls: only("orders", "blog", "next", "nobody"),
  },
  { name: "not-principals-present", policies: source({ notPrincipals: ["*"] }), calls: only("nobody") },
  { name: "namespaces", policies: source({ namespaces: ["shop"] }), calls: only("webapp", "orders") },
  {
    name: "namespaces-prefix",
    policies: source({ namespaces: ["shop*"] }),
    calls: only("webapp", "orders", "next"),
  },
  { name: "namespaces-suffix", policies: source({ namespaces: ["*next"] }), calls: only("next") },
  { name: "not-namespaces", policies: source({ notNamespaces: ["shop"] }), calls: only("blog", "next", "nobody") },
  { name: "accounts", policies: source({ serviceAccounts: ["webapp"] }), calls: only("webapp") },
  {
    name: "accounts-elsewhere",
    policies: source({ serviceAccounts: ["blog/webapp", "shop/orders"] }),
    calls: only("orders", "blog"),
  },
  {
    name: "not-accounts",
    policies: source({ notServiceAccounts: ["shop/webapp"] }),
    calls: only("orders", "blog", "next", "nobody"),
  },
  {
    name: "request-principals",
    policies: source({
      requestPrincipals: ["https://issuer.test/alice", "https://issuer.test/dev-*"],
      notRequestPrincipals: ["*/dev-guest"],
    }),
    calls: [
      yes("webapp", "exact", token("alice")),
      yes("nobody", "the caller's identity is another matter", token("alice")),
      yes("webapp", "prefix", token("dev-bob")),
      no("webapp", "not", token("dev-guest")),
      no("webapp", "other", token("bob")),
      no("webapp", "no token"),
    ],
  },
  {
    name: "request-principals-suffix",
    policies: source({ requestPrincipals: ["*/alice"] }),
    calls: [yes("orders", "of any issuer", token("alice")), no("orders", "other", token("malice"))],
  },
  {
    name: "request-principals-present",
    policies: source({ requestPrincipals: ["*"] }),
    calls: [yes("orders", "any token", token("x")), no("orders", "none")],
  },
  {
    name: "not-request-principals",
    policies: source({ notRequestPrincipals: ["*"] }),
    calls: [no("orders", "any token", token("x")), yes("orders", "none")],
  },
  {
    name: "ip-blocks",
    policies: source({ ipBlocks: ["127.31.0.0/16", "127.32.0.1"], notIpBlocks: ["127.31.7.0/24"] }),
    calls: [
      yes("webapp", "in the range", { from: "127.31.1.1" }),
      yes("nobody", "in plain text", { from: "127.31.1.1" }),
      yes("webapp", "the address", { from: "127.32.0.1" }),
      no("webapp", "beside the address", { from: "127.32.0.2" }),
      no("webapp", "not", { from: "127.31.7.9" }),
      no("webapp", "what a header says is another matter", { from: "127.33.0.1", ...forwardedFor("127.31.1.1") }),
    ],
  },
  {
    name: "remote-ip-blocks",
    policies: source({ remoteIpBlocks: ["10.0.0.0/8", "2001:db8::/32"], notRemoteIpBlocks: ["10.1.0.0/16"] }),
    calls: [
      yes("webapp", "in the range", forwardedFor("10.2.3.4")),
      yes("webapp", "of version 6", forwardedFor("2001:db8::7")),
      no("webapp", "not", forwardedFor("10.1.3.4")),
      no("webapp", "other", forwardedFor("192.0.2.1")),
      yes("webapp", "the last of several counts", forwardedFor("192.0.2.1, 10.2.3.4")),
      no("webapp", "and not the first", forwardedFor("10.2.3.4, 192.0.2.1")),
      no("webapp", "the connection's own"),
      no("webapp", "no address", forwardedFor("10.2.3.4.5")),
    ],
  },
  {
    name: "fields-together",
    policies: source({ namespaces: ["shop"], notPrincipals: [principal], requestPrincipals: ["*"] }),
    calls: [
      yes("orders", "all", token("a")),
      no("orders", "no token"),
      no("webapp", "not", token("a")),
      no("blog", "other", token("a")),
    ],
  },
  {
    name: "one-of-two-sources",
    policies: [
      { rules: [{ from: [{ source: { namespaces: ["blog"] } }, { source: { serviceAccounts: ["shop/orders"] } }] }] },
    ],
    calls: only("blog", "orders"),
  },
];

const operations: readonly AuthorizationRow[] = [
  {
    name: "hosts",
    policies: operation({ hosts: ["A.example.com", "b.*", "*.wild.test"], notHosts: ["b.example.com"] }),
    calls: [
      yes("webapp", "in another case", { host: "a.EXAMPLE.com" }),
      yes("webapp", "prefix", { host: "b.example.org" }),
      yes("webapp", "suffix", { host: "x.wild.test" }),
      no("webapp", "not", { host: "b.example.com" }),
      no("webapp", "other", { host: "c.example.com" }),
      no("webapp", "with a port", { host: "a.example.com:3000" }),
      no("webapp", "a dot at the end", { host: "a.example.com." }),
    ],
  },
  {
    name: "ports",
    policies: operation({ ports: [String(httpPort)] }),
    calls: [yes("webapp", "named"), no("webapp", "other", { port: otherHttpPort })],
  },
  {
    name: "not-ports",
    policies: operation({ notPorts: [String(httpPort)] }),
    calls: [no("webapp", "named"), yes("webapp", "other", { port: otherHttpPort })],
  },
  {
    name: "methods",
    policies: operation({ methods: ["GET", "P*", "*ARCH"], notMethods: ["PATCH"] }),
    calls: [
      yes("webapp", "exact"),
      yes("webapp", "prefix", { method: "PUT" }),
      yes("webapp", "suffix", { method: "SEARCH" }),
      no("webapp", "not", { method: "PATCH" }),
      no("webapp", "other", { method: "DELETE" }),
    ],
  },
  {
    name: "methods-present",
    policies: operation({ methods: ["*"] }),
    calls: [yes("webapp", "any", { method: "DELETE" })],
  },
  {
    name: "paths",
    policies: operation({
      paths: ["/paths/exact", "/paths/prefix/*", "*.suffix", "/paths/%2e"],
      notPaths: ["/paths/prefix/not*"],
    }),
    calls: [
      yes("webapp", "exact", { path: "exact" }),
      yes("webapp", "the query is another matter", { path: "exact?a=/paths/other" }),
      no("webapp", "longer", { path: "exact/" }),
      yes("webapp", "prefix", { path: "prefix/a/b" }),
      no("webapp", "not", { path: "prefix/nothing" }),
      yes("webapp", "suffix", { path: "a.suffix" }),
      no("webapp", "a suffix of the query", { path: "a?b=.suffix" }),
      no("webapp", "another case", { path: "EXACT" }),
      no("webapp", "dots are resolved", { path: "prefix/../other" }),
      yes("webapp", "dots are resolved, to the good", { path: "other/../exact" }),
      no("webapp", "encoded dots are resolved", { path: "prefix/%2e%2e/other" }),
      no("webapp", "encoded letters are decoded", { path: "prefix/%6eot" }),
      { ...no("webapp", "a fragment", { path: "exact#a" }), refusal: "400 " },
    ],
  },
  {
    name: "path-templates",
    policies: operation({ paths: ["/path-templates/{*}/parts", "/path-templates/files/{**}"] }),
    calls: [
      yes("webapp", "a segment", { path: "a/parts" }),
      no("webapp", "two segments", { path: "a/b/parts" }),
      no("webapp", "no segment", { path: "/parts" }),
      yes("webapp", "any rest", { path: "files/a/b" }),
      yes("webapp", "no rest", { path: "files/" }),
    ],
  },
  {
    name: "one-of-two-operations",
    policies: [{ rules: [{ to: [{ operation: { methods: ["GET"] } }, { operation: { hosts: ["b.test"] } }] }] }],
    calls: [
      yes("webapp", "the first"),
      yes("webapp", "the second", { method: "POST", host: "b.test" }),
      no("webapp", "neither", { method: "POST" }),
    ],
  },
];

const conditions: readonly AuthorizationRow[] = [
  {
    name: "request-headers",
    policies: when({ key: "request.headers[X-Role]", values: ["admin", "dev-*", "*-ops"], notValues: ["dev-guest"] }),
    calls: [
      yes("webapp", "exact", { headers: { "x-role": "admin" } }),
      yes("webapp", "prefix", { headers: { "x-role": "dev-a" } }),
      yes("webapp", "suffix", { headers: { "x-role": "night-ops" } }),
      no("webapp", "not", { headers: { "x-role": "dev-guest" } }),
      no("webapp", "another case", { headers: { "x-role": "Admin" } }),
      no("webapp", "missing"),
    ],
  },
  {
    name: "request-headers-present",
    policies: when(
      { key: "request.headers[x-there]", values: ["*"] },
      { key: "request.headers[x-not-there]", notValues: ["*"] },
    ),
    calls: [
      yes("webapp", "there", { headers: { "x-there": "a" } }),
      no("webapp", "missing"),
      no("webapp", "what may not be there", { headers: { "x-there": "a", "x-not-there": "b" } }),
    ],
  },
  {
    name: "source-ip",
    policies: when({ key: "source.ip", values: ["127.31.0.0/16"], notValues: ["127.31.7.0/24"] }),
    calls: [
      yes("webapp", "in the range", { from: "127.31.1.1" }),
      no("webapp", "not", { from: "127.31.7.1" }),
      no("webapp", "other", { from: "127.32.1.1" }),
    ],
  },
  {
    name: "source-namespace",
    policies: when({ key: "source.namespace", values: ["shop*"], notValues: ["shop-next"] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "source-account",
    policies: when({ key: "source.serviceAccount", values: ["webapp", "shop/orders", "blog/webapp"] }),
    calls: only("webapp", "orders", "blog"),
  },
  {
    name: "source-not-account",
    policies: when({ key: "source.serviceAccount", notValues: ["shop/orders", "blog/webapp"] }),
    calls: only("webapp", "next", "nobody"),
  },
  {
    name: "source-principal",
    policies: when({ key: "source.principal", values: ["*"], notValues: ["cluster.local/ns/blog/*"] }),
    calls: only("webapp", "orders", "next"),
  },
  {
    name: "source-principal-suffix",
    policies: when({ key: "source.principal", values: ["*/sa/orders", principal] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "remote-ip",
    policies: when({ key: "remote.ip", values: ["10.0.0.0/8"], notValues: ["10.1.0.0/16"] }),
    calls: [
      yes("webapp", "in the range", forwardedFor("10.2.1.1")),
      no("webapp", "not", forwardedFor("10.1.1.1")),
      no("webapp", "other", forwardedFor("192.0.2.1")),
    ],
  },
  {
    name: "auth-principal",
    policies: when({
      key: "request.auth.principal",
      values: ["https://issuer.test/*"],
      notValues: ["https://issuer.test/mallory"],
    }),
    calls: [
      yes("webapp", "prefix", token("a")),
      no("webapp", "not", token("mallory")),
      no("webapp", "no token"),
      no("webapp", "another issuer", { claims: { iss: "https://other.test", sub: "a" } }),
    ],
  },
  {
    name: "auth-audiences",
    policies: when({ key: "request.auth.audiences", values: ["shop", "web-*"], notValues: ["public"] }),
    calls: [
      yes("webapp", "named", { claims: { aud: "shop" } }),
      yes("webapp", "one of several", { claims: { aud: ["shop", "b"] } }),
      yes("webapp", "prefix", { claims: { aud: ["parity", "web-a"] } }),
      no("webapp", "not", { claims: { aud: ["shop", "public"] } }),
      no("webapp", "other", { claims: { aud: "parity" } }),
    ],
  },
  {
    name: "auth-presenter",
    policies: when({ key: "request.auth.presenter", values: ["client"], notValues: ["other"] }),
    calls: [
      yes("webapp", "named", { claims: { azp: "client" } }),
      no("webapp", "other", { claims: { azp: "clients" } }),
      no("webapp", "none", token("a")),
    ],
  },
  {
    name: "auth-claims",
    policies: when({
      key: "request.auth.claims[groups]",
      values: ["admin", "dev-*", "*-ops"],
      notValues: ["dev-guest"],
    }),
    calls: [
      yes("webapp", "in a list", { claims: { groups: ["a", "admin"] } }),
      yes("webapp", "a text", { claims: { groups: "dev-a" } }),
      yes("webapp", "suffix", { claims: { groups: ["night-ops"] } }),
      no("webapp", "not", { claims: { groups: ["admin", "dev-guest"] } }),
      no("webapp", "other", { claims: { groups: ["adm"] } }),
      no("webapp", "a number", { claims: { groups: 7 } }),
      no("webapp", "no claim", { claims: {} }),
      no("webapp", "no token"),
    ],
  },
  {
    name: "auth-claims-nested",
    policies: when({ key: "request.auth.claims[realm][roles]", values: ["admin"] }),
    calls: [
      yes("webapp", "there", { claims: { realm: { roles: ["admin"] } } }),
      no("webapp", "elsewhere", { claims: { roles: ["admin"] } }),
      no("webapp", "a text on the way", { claims: { realm: "roles" } }),
    ],
  },
  {
    name: "auth-claims-present",
    policies: when({ key: "request.auth.claims[groups]", values: ["*"] }),
    calls: [yes("webapp", "any", { claims: { groups: "x" } }), no("webapp", "none", { claims: {} })],
  },
  {
    name: "scope",
    policies: when({ key: "request.auth.claims[scope]", values: ["catalog.write"] }),
    calls: [
      yes("webapp", "one of several", { claims: { scope: "openid catalog.write" } }),
      no("webapp", "part of a word", { claims: { scope: "catalog.writes" } }),
    ],
  },
  {
    name: "destination-ip",
    policies: when({ key: "destination.ip", values: ["127.0.0.0/8"], notValues: ["127.1.0.0/16"] }),
    calls: [yes("webapp", "of the workload")],
  },
  {
    name: "destination-ip-other",
    policies: when({ key: "destination.ip", values: ["10.0.0.0/8"] }),
    calls: [no("webapp", "of another")],
  },
  {
    name: "destination-port",
    policies: when({ key: "destination.port", values: [String(httpPort), "80"], notValues: [String(otherHttpPort)] }),
    calls: [yes("webapp", "named"), no("webapp", "not", { port: otherHttpPort })],
  },
  {
    name: "sni",
    policies: when({
      key: "connection.sni",
      values: ["a.test", "outbound_.*", "*.wild.test"],
      notValues: ["b.wild.test"],
    }),
    calls: [
      yes("webapp", "exact", { sni: "a.test" }),
      yes("webapp", "prefix", { sni: "outbound_.3000_._.server.shop.svc.cluster.local" }),
      yes("webapp", "suffix", { sni: "a.wild.test" }),
      no("webapp", "not", { sni: "b.wild.test" }),
      no("webapp", "other", { sni: "c.test" }),
      no("nobody", "plain text has none"),
    ],
  },
  {
    name: "sni-present",
    policies: when({ key: "connection.sni", values: ["*"] }),
    calls: [yes("webapp", "any", { sni: "c.test" }), no("nobody", "plain text has none")],
  },
  {
    name: "filter-metadata",
    policies: when({ key: "experimental.envoy.filters.http.lua[key]", values: ["a"] }),
    calls: [no("webapp", "nothing writes it")],
  },
  {
    name: "not-filter-metadata",
    policies: when({ key: "experimental.envoy.filters.http.lua[key]", notValues: ["a"] }),
    calls: [yes("webapp", "nothing writes it")],
  },
  {
    name: "all-conditions",
    policies: when(
      { key: "source.namespace", values: ["shop"] },
      { key: "request.headers[x-a]", values: ["1"] },
      { key: "destination.port", values: [String(httpPort)] },
    ),
    calls: [
      yes("webapp", "all", { headers: { "x-a": "1" } }),
      no("blog", "two", { headers: { "x-a": "1" } }),
      no("webapp", "two"),
    ],
  },
];

const anyone: Policy = { rules: [{}] };

const actions: readonly AuthorizationRow[] = [
  { name: "empty-rule", policies: [anyone], calls: only(...everybody) },
  { name: "no-policy", policies: [], calls: only() },
  {
    name: "deny",
    policies: [deny({ from: [{ source: { namespaces: ["blog"] } }] })],
    calls: only("webapp", "orders", "next", "nobody"),
  },
  {
    name: "deny-before-allow",
    policies: [
      { rules: [{ from: [{ source: { principals: ["*"] } }] }] },
      deny({ from: [{ source: { principals: [principal] } }] }),
    ],
    calls: [no("webapp"), yes("orders"), yes("blog"), yes("next"), { ...no("nobody"), isUnmatched: true }],
  },
  {
    name: "deny-whoever-is-not",
    policies: [deny({ from: [{ source: { notPrincipals: ["*/sa/webapp"] } }] })],
    calls: only("webapp", "blog", "next"),
  },
  {
    // What is no spelling of the path for a proxy may be one for an application: to list what is allowed is safer.
    name: "deny-paths",
    policies: [deny({ to: [{ operation: { paths: ["/deny-paths/secret*"] } }] })],
    calls: [
      no("webapp", "the path", { path: "secret" }),
      no("webapp", "below it", { path: "secret/a" }),
      no("webapp", "with a query", { path: "secret?a" }),
      no("webapp", "an encoded letter", { path: "%73ecret" }),
      no("webapp", "a dot", { path: "./secret" }),
      no("webapp", "dots", { path: "a/../secret" }),
      no("webapp", "encoded dots", { path: "a/%2E%2e/secret" }),
      no("webapp", "a slash the other way round", { path: "a\\..\\secret" }),
      no("webapp", "an encoded slash behind it", { path: "secret%2fa" }),
      yes("webapp", "another", { path: "public" }),
      yes("webapp", "two slashes", { path: "/secret" }),
      yes("webapp", "another case", { path: "SECRET" }),
      yes("webapp", "encoded slashes", { path: "a%2f..%2fsecret" }),
      yes("webapp", "encoded twice", { path: "%2573ecret" }),
    ],
  },
  {
    name: "deny-without-token",
    policies: [deny({ from: [{ source: { notRequestPrincipals: ["*"] } }] })],
    calls: [yes("webapp", "with a token", token("a")), no("webapp", "without")],
  },
  {
    name: "one-of-two-rules",
    policies: [
      {
        rules: [
          { from: [{ source: { namespaces: ["blog"] } }] },
          { from: [{ source: { namespaces: ["shop"] } }], to: [{ operation: { methods: ["GET"] } }] },
        ],
      },
    ],
    calls: [
      yes("blog", "the first", { method: "POST" }),
      yes("webapp", "the second"),
      no("webapp", "half of the second", { method: "POST" }),
      no("next", "neither"),
    ],
  },
  {
    name: "one-of-two-policies",
    policies: [...source({ namespaces: ["blog"] }), ...source({ namespaces: ["shop-next"] })],
    calls: only("blog", "next"),
  },
  {
    name: "audit",
    policies: [{ action: "AUDIT", rules: [{}] }],
    calls: [yes("webapp", "marks and decides nothing"), yes("nobody", "marks and decides nothing")],
  },
  {
    name: "audit-allows-nothing",
    policies: [{ action: "AUDIT", rules: [{}] }, ...source({ namespaces: ["blog"] })],
    calls: only("blog"),
  },
  {
    name: "deny-on-trial",
    policies: [{ ...deny({}), annotations: { "istio.io/dry-run": "true" } }],
    calls: [yes("webapp", "decides nothing")],
  },
  {
    name: "allow-on-trial",
    policies: [{ ...anyone, annotations: { "tulle.io/dry-run": "true" } }],
    calls: [no("webapp", "decides nothing")],
  },
  {
    name: "not-on-trial",
    policies: [{ ...deny({}), annotations: { "istio.io/dry-run": "false" } }],
    calls: [no("webapp", "decides")],
  },
  {
    name: "of-the-mesh",
    policies: [{ ...deny({ from: [{ source: { namespaces: ["blog"] } }] }), namespace: "istio-system" }],
    calls: only("webapp", "orders", "next", "nobody"),
  },
  {
    name: "of-another-namespace",
    policies: [{ ...deny({}), namespace: "blog" }],
    calls: [yes("webapp", "is another's matter")],
  },
  {
    name: "of-another-workload",
    policies: [{ ...deny({}), selector: { matchLabels: { app: "other" } } }],
    calls: [yes("webapp", "is another's matter")],
  },
  {
    name: "of-this-workload",
    policies: [{ ...deny({}), selector: { matchLabels: { kind: "server" } } }],
    calls: [no("webapp", "has its label")],
  },
];

/** One port a rule: paths cannot keep rules apart where there are none. */
const connections: readonly AuthorizationRow[] = [
  { name: "tcp-nothing", tcpPort: 4000, policies: [], calls: only() },
  {
    name: "tcp-principals",
    tcpPort: 4001,
    policies: source({ principals: [principal, "cluster.local/ns/blog/*"], notPrincipals: ["*/sa/orders"] }),
    calls: only("webapp", "blog"),
  },
  {
    name: "tcp-namespaces",
    tcpPort: 4002,
    policies: source({ namespaces: ["shop*"], notNamespaces: ["shop-next"] }),
    calls: only("webapp", "orders"),
  },
  {
    name: "tcp-accounts",
    tcpPort: 4003,
    policies: source({ serviceAccounts: ["orders", "blog/webapp"] }),
    calls: only("orders", "blog"),
  },
  {
    name: "tcp-addresses",
    tcpPort: 4004,
    policies: source({ ipBlocks: ["127.31.0.0/16"], notIpBlocks: ["127.31.7.0/24"] }),
    calls: [
      yes("webapp", "in the range", { from: "127.31.1.1" }),
      yes("nobody", "in plain text", { from: "127.31.1.1" }),
      no("webapp", "not", { from: "127.31.7.1" }),
      no("nobody", "other", { from: "127.32.1.1" }),
    ],
  },
  {
    name: "tcp-deny",
    tcpPort: 4005,
    policies: [deny({ from: [{ source: { notPrincipals: ["*"] } }] })],
    calls: only(...workloads),
  },
  {
    name: "tcp-conditions",
    tcpPort: 4006,
    policies: when(
      { key: "source.principal", values: ["*/sa/webapp"] },
      { key: "connection.sni", values: ["outbound_.*"] },
      { key: "destination.port", values: ["4006"] },
      { key: "source.ip", values: ["127.0.0.0/8"] },
    ),
    calls: [...only("webapp", "blog", "next"), no("webapp", "another server name", { sni: "a.test" })],
  },
  {
    name: "tcp-allow-about-requests",
    tcpPort: 4007,
    policies: [
      { rules: [{ to: [{ operation: { methods: ["GET"] } }] }] },
      { rules: [{ from: [{ source: { requestPrincipals: ["*"] } }] }] },
      ...when({ key: "request.headers[host]", values: ["*"] }),
    ],
    calls: only(),
  },
  {
    name: "tcp-deny-about-requests",
    tcpPort: 4008,
    policies: [deny({ from: [{ source: { namespaces: ["blog"] } }], to: [{ operation: { methods: ["DELETE"] } }] })],
    calls: only("webapp", "orders", "next", "nobody"),
  },
  {
    name: "tcp-on-trial",
    tcpPort: 4009,
    policies: [{ ...deny({}), annotations: { "istio.io/dry-run": "true" } }],
    calls: [yes("webapp", "decides nothing")],
  },
  {
    name: "tcp-audit",
    tcpPort: 4010,
    policies: [{ action: "AUDIT", rules: [{}] }],
    calls: [yes("webapp", "marks and decides nothing")],
  },
];

export const authorizationRows: readonly AuthorizationRow[] = [
  ...sources,
  ...operations,
  ...conditions,
  ...actions,
  ...connections,
];

export interface PolicyManifest {
  readonly metadata: object;
  readonly spec: Pick<Policy, "selector"> & { readonly action: string; readonly rules: readonly PolicyRule[] };
}

/** The policies of a row as a user writes them, kept to the row's own paths or port. */
export function policiesOf(row: AuthorizationRow): readonly PolicyManifest[] {
  const isAllowed = row.policies.length > 0 && row.policies.every(({ action = "ALLOW" }) => action !== "ALLOW");
  const all = isAllowed ? [...row.policies, anyone] : row.policies;
  return all.map(({ action = "ALLOW", annotations = {}, namespace = "shop", selector, rules }, index) => ({
    apiVersion: "security.tulle.io/v1",
    kind: "AuthorizationPolicy",
    metadata: { name: policyName(row, index), namespace, annotations },
    spec: {
      action,
      ...(selector === undefined ? {} : { selector }),
      rules: rules.map((rule) => ({ ...rule, to: (rule.to ?? [{ operation: {} }]).map(ownOperation(row, action)) })),
    },
  }));
}

export function policyName({ name }: AuthorizationRow, index: number): string {
  return `${name}-${index}`;
}

type Operation = NonNullable<PolicyRule["to"]>[number];

function ownOperation({ name, tcpPort }: AuthorizationRow, action: string): (own: Operation) => Operation {
  return ({ operation: fields }) => {
    if (tcpPort !== undefined) return { operation: { ports: [String(tcpPort)], ...fields } };
    // Without its port a DENY for some paths denies every connection to a TCP port.
    const ports = action === "ALLOW" || "notPorts" in fields ? {} : { ports: [String(httpPort)] };
    return { operation: { paths: [`/${name}/*`], ...ports, ...fields } };
  };
}
