// Providers' endpoints as they are kept: a restarted control plane must not close the pages that people are signed in
// for until every provider has answered again.
import type { ProviderEndpoints } from "./provider-metadata.ts";

export type SavedEndpoints = ReadonlyMap<string, ProviderEndpoints>;

const names = ["authorizationEndpoint", "tokenEndpoint", "endSessionEndpoint"] as const;

export function parseSavedProvider(value: unknown): ProviderEndpoints | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(names.flatMap((name) => (isWebUrl(fields[name]) ? [[name, fields[name]] as const] : [])));
}

function isWebUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:$/.test(URL.parse(value)?.protocol ?? "");
}
