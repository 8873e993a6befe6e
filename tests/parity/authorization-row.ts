// A row of the table of allowed and denied calls: policies, who calls what, and the words that tables of them are
// written in. Each row is for paths (or, without requests, for a port) of its own, so that one mesh holds them all.

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
export const yes: Made = (caller, name = "", request = {}) => ({ caller, name, isAllowed: true, ...request });
export const no: Made = (caller, name = "", request = {}) => ({ caller, name, isAllowed: false, ...request });

export const everybody: readonly Caller[] = ["webapp", "orders", "blog", "next", "nobody"];
export const workloads: readonly Caller[] = ["webapp", "orders", "blog", "next"];

/** Those named get in and all others do not. */
export const only = (...allowed: readonly Caller[]): readonly AuthorizationCall[] =>
  everybody.map((caller) => (allowed.includes(caller) ? yes(caller) : no(caller)));

export const source = (fields: object): readonly Policy[] => [{ rules: [{ from: [{ source: fields }] }] }];
export const operation = (fields: Readonly<Record<string, readonly string[]>>): readonly Policy[] => [
  { rules: [{ to: [{ operation: fields }] }] },
];
export const when = (...conditions: NonNullable<PolicyRule["when"]>): readonly Policy[] => [
  { rules: [{ when: conditions }] },
];
export const deny = (rule: PolicyRule): Policy => ({ action: "DENY", rules: [rule] });

export const principal = "cluster.local/ns/shop/sa/webapp";
export const token = (sub: string): Request => ({ claims: { sub } });
export const forwardedFor = (address: string): Request => ({ headers: { "x-forwarded-for": address } });

export const anyone: Policy = { rules: [{}] };

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
