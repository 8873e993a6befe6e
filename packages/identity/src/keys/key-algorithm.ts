// The kinds of keys that certificates of the mesh may have, and what is asked of a key that comes from outside.
import type { KeyObject } from "node:crypto";

/**
 * P-256 is the default: quick to make and to verify, and known to every TLS stack. Ed25519 certificates are good
 * between Tulle's proxies, but stock Envoy (BoringSSL) does not offer them in a handshake.
 */
export type KeyAlgorithm = "P-256" | "P-384" | "Ed25519" | "RSA-2048" | "RSA-3072" | "RSA-4096";

const curves = new Map([
  ["prime256v1", "P-256"],
  ["secp384r1", "P-384"],
  ["secp521r1", "P-521"],
]);
/** Above this a single signature costs tens of milliseconds, which a stranger's request must not. */
const maxRsaBits = 8192;
const minRsaBits = 2048;

/** What is wrong with a key for use in the mesh, as text; undefined for a good one. */
export function keyProblem(key: KeyObject): string | undefined {
  const details = key.asymmetricKeyDetails;
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return undefined;
    case "ec":
      return curves.has(details?.namedCurve ?? "")
        ? undefined
        : `the curve ${details?.namedCurve ?? "without a name"} is none of P-256, P-384, P-521`;
    case "rsa": {
      const bits = details?.modulusLength ?? 0;
      if (bits < minRsaBits) return `an RSA key needs at least ${minRsaBits} bits, this one has ${bits}`;
      if (bits > maxRsaBits) return `an RSA key may have at most ${maxRsaBits} bits, this one has ${bits}`;
      const exponent = details?.publicExponent ?? 0n;
      // An even exponent, or 1, is no key; one beyond 32 bits makes each verification slow.
      return exponent > 2n && exponent % 2n === 1n && exponent < 2n ** 32n
        ? undefined
        : "the RSA exponent is not usable";
    }
    default:
      return `a key of type ${key.asymmetricKeyType ?? "unknown"} is none of EC, RSA, Ed25519`;
  }
}
