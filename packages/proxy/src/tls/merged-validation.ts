// combined_validation_context: rules of the resource and rules that came as a secret hold together (Envoy merges the
// messages: lists are joined, single fields of the secret win where they are set).
import type { ValidationContext } from "./secret.ts";

export function mergedValidation(
  own: ValidationContext | undefined,
  fetched: ValidationContext | undefined,
): ValidationContext | undefined {
  if (own === undefined || fetched === undefined) return own ?? fetched;
  return {
    type: "validation_context",
    trustedCa: fetched.trustedCa ?? own.trustedCa,
    spkiHashes: own.spkiHashes.union(fetched.spkiHashes),
    certificateHashes: own.certificateHashes.union(fetched.certificateHashes),
    nameMatches: [...own.nameMatches, ...fetched.nameMatches],
    crl: fetched.crl ?? own.crl,
    checksLeafRevocationOnly: own.checksLeafRevocationOnly || fetched.checksLeafRevocationOnly,
    allowsExpired: own.allowsExpired || fetched.allowsExpired,
    acceptsUntrusted: own.acceptsUntrusted || fetched.acceptsUntrusted,
    maxVerifyDepth: Math.min(own.maxVerifyDepth, fetched.maxVerifyDepth),
  };
}

/** Rules that would not hold what they seem to promise, in Envoy's words; to be asked of the merged rules. */
export function validationProblem(context: ValidationContext): string | undefined {
  if (context.trustedCa !== undefined) return undefined;
  if (context.crl !== undefined) return "Failed to load CRL without trusted CA";
  if (context.nameMatches.length > 0) {
    return "SAN-based verification of peer certificates without trusted CA is insecure and not allowed";
  }
  return context.allowsExpired ? "Certificate validity period is always ignored without trusted CA" : undefined;
}
