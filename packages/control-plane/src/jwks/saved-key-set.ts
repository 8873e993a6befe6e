// Fetched keys as they are kept: a control plane that starts anew while an issuer is down goes on with the last ones.
import { parseKeySet } from "@tulle/config";

export interface SavedKeySet {
  readonly jwks: string;
  /** Milliseconds since 1970. */
  readonly fetchedAtMs: number;
}

/** By `jwksLocationKey`. */
export type SavedKeys = ReadonlyMap<string, SavedKeySet>;

export function parseSavedKeySet(value: unknown): SavedKeySet | undefined {
  if (typeof value !== "object" || value === null || !("jwks" in value) || !("fetchedAtMs" in value)) return undefined;
  const { jwks, fetchedAtMs } = value;
  if (typeof jwks !== "string" || typeof fetchedAtMs !== "number") return undefined;
  const keys = parseKeySet(jwks);
  return "text" in keys ? { jwks: keys.text, fetchedAtMs } : undefined;
}
