// Rows about what becomes of a match: actions, their order, trials, what a policy holds for; and ports without
// requests.
import {
  everybody,
  workloads,
  type AuthorizationRow,
  deny,
  no,
  only,
  principal,
  source,
  token,
  when,
  yes,
  anyone,
} from "./authorization-row.ts";

export const actionRows: readonly AuthorizationRow[] = [
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
export const connectionRows: readonly AuthorizationRow[] = [
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
