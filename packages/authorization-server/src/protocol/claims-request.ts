// The `claims` parameter (OpenID Connect Core §5.5): single claims that a client asks for, in the ID token or at
// userinfo.

export interface ClaimRequest {
  readonly essential: boolean;
  /** The only values that would do; undefined where any would. */
  readonly values: readonly unknown[] | undefined;
}

export interface ClaimsRequest {
  readonly idToken: ReadonlyMap<string, ClaimRequest>;
  readonly userinfo: ReadonlyMap<string, ClaimRequest>;
}

export const maxClaimsRequestCharacters = 2048;

/** Undefined for what §5.5 does not allow. Members that it does not know are ignored, as it says. */
export function parseClaimsRequest(text: string): ClaimsRequest | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(parsed)) return undefined;
  const idToken = claimsOf(parsed["id_token"]);
  const userinfo = claimsOf(parsed["userinfo"]);
  return idToken === undefined || userinfo === undefined ? undefined : { idToken, userinfo };
}

function claimsOf(member: unknown): ReadonlyMap<string, ClaimRequest> | undefined {
  if (member === undefined || member === null) return new Map();
  if (!isObject(member)) return undefined;
  const claims = new Map<string, ClaimRequest>();
  for (const [name, asked] of Object.entries(member)) {
    const claim = claimOf(asked);
    if (claim === undefined) return undefined;
    claims.set(name, claim);
  }
  return claims;
}

function claimOf(asked: unknown): ClaimRequest | undefined {
  if (asked === null) return { essential: false, values: undefined };
  if (!isObject(asked)) return undefined;
  const { essential = false, value, values } = asked;
  if (typeof essential !== "boolean") return undefined;
  if (values !== undefined && (!Array.isArray(values) || values.length === 0)) return undefined;
  if (value !== undefined && values !== undefined) return undefined;
  return { essential, values: value === undefined ? (values as readonly unknown[] | undefined) : [value] };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
