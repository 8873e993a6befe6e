// Policies on who the calling workload is, and the calls that they allow or deny. Each rule is for paths of its own, so
// that one table holds them all; a caller without identity speaks plain text.

export interface Identity {
  readonly namespace: string;
  readonly account: string;
}

export interface IdentityCall {
  readonly name: string;
  readonly as: Identity | undefined;
  readonly isAllowed: boolean;
}

export interface IdentityRule {
  /** Also the first segment of its paths. */
  readonly name: string;
  readonly source?: object;
  readonly when?: readonly object[];
  readonly calls: readonly IdentityCall[];
}

const identities: Readonly<Record<string, Identity | undefined>> = {
  webapp: { namespace: "shop", account: "webapp" },
  orders: { namespace: "shop", account: "orders" },
  blog: { namespace: "blog", account: "webapp" },
  "shop-next": { namespace: "shop-next", account: "webapp" },
  nobody: undefined,
};

/** Those of `allowed` get in, all others do not. */
function rule(
  name: string,
  condition: Pick<IdentityRule, "source" | "when">,
  ...allowed: readonly string[]
): IdentityRule {
  const calls = Object.entries(identities).map(([caller, as]) => ({
    name: caller,
    as,
    isAllowed: allowed.includes(caller),
  }));
  return { name, ...condition, calls };
}

const webapp = "cluster.local/ns/shop/sa/webapp";
const everyone = Object.keys(identities);

export const identityRules: readonly IdentityRule[] = [
  rule("anyone", {}, ...everyone),
  rule("principals", { source: { principals: [webapp] } }, "webapp"),
  rule("principals-prefix", { source: { principals: ["cluster.local/ns/shop/*"] } }, "webapp", "orders"),
  rule("principals-suffix", { source: { principals: ["*/sa/webapp"] } }, "webapp", "blog", "shop-next"),
  rule("principals-any", { source: { principals: ["*"] } }, "webapp", "orders", "blog", "shop-next"),
  rule("not-principals", { source: { notPrincipals: [webapp] } }, "orders", "blog", "shop-next", "nobody"),
  rule("not-principals-any", { source: { notPrincipals: ["*"] } }, "nobody"),
  rule("namespaces", { source: { namespaces: ["shop"] } }, "webapp", "orders"),
  rule("namespaces-prefix", { source: { namespaces: ["shop*"] } }, "webapp", "orders", "shop-next"),
  rule("not-namespaces", { source: { notNamespaces: ["shop"] } }, "blog", "shop-next", "nobody"),
  rule("accounts", { source: { serviceAccounts: ["webapp"] } }, "webapp"),
  rule("accounts-elsewhere", { source: { serviceAccounts: ["blog/webapp", "shop/orders"] } }, "blog", "orders"),
  rule("not-accounts", { source: { notServiceAccounts: ["webapp"] } }, "orders", "blog", "shop-next", "nobody"),
  rule("both", { source: { namespaces: ["shop"], notPrincipals: [webapp] } }, "orders"),
  rule("when-principal", { when: [{ key: "source.principal", values: [webapp] }] }, "webapp"),
  rule("when-not-principal", { when: [{ key: "source.principal", notValues: ["*/sa/webapp"] }] }, "orders", "nobody"),
  rule("when-namespace", { when: [{ key: "source.namespace", values: ["blog"] }] }, "blog"),
  rule("when-account", { when: [{ key: "source.serviceAccount", values: ["shop/orders"] }] }, "orders"),
  rule(
    "sni",
    { when: [{ key: "connection.sni", values: ["outbound_.3000_._.*"] }] },
    "webapp",
    "orders",
    "blog",
    "shop-next",
  ),
  {
    name: "client-accounts",
    source: { serviceAccounts: ["client-tulle", "client-envoy"] },
    calls: [],
  },
  { name: "not-client-accounts", source: { notServiceAccounts: ["client-tulle", "client-envoy"] }, calls: [] },
];
