// Rows about who calls: every field of `from`.
import {
  workloads,
  type AuthorizationRow,
  forwardedFor,
  no,
  only,
  principal,
  source,
  token,
  yes,
} from "./authorization-row.ts";

export const callerRows: readonly AuthorizationRow[] = [
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
  { name: "trust-domains", policies: source({ trustDomains: ["cluster.local"] }), calls: only(...workloads) },
  {
    // A `.` is no pattern, and a `*` ends where the trust domain does.
    name: "trust-domains-pattern",
    policies: source({ trustDomains: ["cluster", "clusterxlocal", "*webapp", "*.test"] }),
    calls: only(),
  },
  { name: "trust-domains-star", policies: source({ trustDomains: ["clu*"] }), calls: only(...workloads) },
  { name: "not-trust-domains", policies: source({ notTrustDomains: ["*.local"] }), calls: only("nobody") },
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
