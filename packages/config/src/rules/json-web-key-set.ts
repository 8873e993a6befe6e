/**
 * JSON Web Key Sets (RFC 7517) as proxies take them: public keys alone, and only those that a proxy can use. Envoy
 * refuses a whole listener for a set without any.
 */
import { createPublicKey } from "node:crypto";
import { isMapping } from "../schema/check.ts";

/** Of all keys of a set, this many are looked at; an issuer publishes two or three. */
const maxKeys = 100;

/** RFC 7518 §3.3. */
const minRsaBits = 2048;

/** Public members by key type (RFC 7518 §6, RFC 8037 §2), and the algorithms that a key of the type may be bound to. */
const keyTypes: Readonly<Record<string, { readonly members: readonly string[]; readonly algorithm: RegExp }>> = {
  RSA: { members: ["n", "e"], algorithm: /^[RP]S(256|384|512)$/ },
  EC: { members: ["crv", "x", "y"], algorithm: /^ES(256|384|512)$/ },
  OKP: { members: ["crv", "x"], algorithm: /^EdDSA$/ },
};

const curves: ReadonlySet<unknown> = new Set(["P-256", "P-384", "P-521", "Ed25519"]);
const commonMembers = ["kty", "kid", "alg", "use"] as const;

export type JsonWebKeySet = { readonly text: string; readonly keys: number } | { readonly problem: string };

/**
 * `text` with the usable public keys alone, as JSON; what is wrong when there are none. Private members never go on.
 */
export function parseKeySet(text: string): JsonWebKeySet {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return { problem: "the JSON Web Key Set is not JSON" };
  }
  if (!isMapping(document) || !Array.isArray(document["keys"])) {
    return { problem: 'a JSON Web Key Set is a JSON object with a list "keys"' };
  }
  const keys = document["keys"].slice(0, maxKeys).flatMap(publicKey);
  if (keys.length === 0) {
    return { problem: "the JSON Web Key Set holds no public key that a proxy can check signatures with" };
  }
  return { text: JSON.stringify({ keys }), keys: keys.length };
}

function publicKey(key: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!isMapping(key) || typeof key["kty"] !== "string" || !Object.hasOwn(keyTypes, key["kty"])) return [];
  const { members, algorithm } = keyTypes[key["kty"]]!;
  const { alg, use, crv } = key;
  if (alg !== undefined && (typeof alg !== "string" || !algorithm.test(alg))) return [];
  if ((use !== undefined && use !== "sig") || (crv !== undefined && !curves.has(crv))) return [];
  const kept = [...commonMembers, ...members].filter((name) => typeof key[name] === "string");
  const picked = Object.fromEntries(kept.map((name) => [name, key[name]]));
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: picked, format: "jwk" });
    return (asymmetricKeyDetails?.modulusLength ?? minRsaBits) < minRsaBits ? [] : [picked];
  } catch {
    return [];
  }
}
