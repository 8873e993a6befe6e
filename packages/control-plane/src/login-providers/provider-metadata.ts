// What an OpenID provider says of itself (OpenID Connect Discovery 1.0 §3): where browsers sign in and out, where codes
// are redeemed. Nothing is believed of it that would send people, or a client's secret, somewhere unsafe.

export interface ProviderEndpoints {
  readonly authorizationEndpoint?: string;
  readonly tokenEndpoint?: string;
  readonly endSessionEndpoint?: string;
}

export type ReadMetadata = { readonly endpoints: ProviderEndpoints } | { readonly problem: string };

export function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

export function readProviderMetadata(document: string, issuer: string): ReadMetadata {
  let json: unknown;
  try {
    json = JSON.parse(document);
  } catch {
    return { problem: "the metadata are not JSON" };
  }
  if (typeof json !== "object" || json === null) return { problem: "the metadata are not an object" };
  const fields = json as Readonly<Record<string, unknown>>;
  // §4.3: or anyone's metadata could stand for anyone's.
  if (fields["issuer"] !== issuer) return { problem: "the metadata are those of another issuer" };
  const names = {
    authorizationEndpoint: "authorization_endpoint",
    tokenEndpoint: "token_endpoint",
    endSessionEndpoint: "end_session_endpoint",
  } as const;
  const endpoints: Record<string, string> = {};
  for (const [key, name] of Object.entries(names)) {
    const value = fields[name];
    if (value === undefined) continue;
    const problem = endpointProblem(value, issuer);
    if (problem !== undefined) return { problem: `${name} ${problem}` };
    endpoints[key] = value as string;
  }
  return { endpoints };
}

function endpointProblem(value: unknown, issuer: string): string | undefined {
  const url = typeof value === "string" ? URL.parse(value) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return "is no http or https URL";
  if (url.username !== "" || url.password !== "" || url.hash !== "") return "has credentials or a fragment";
  if (issuer.startsWith("https:") && url.protocol !== "https:") return "is not encrypted, and the issuer is";
  return undefined;
}
