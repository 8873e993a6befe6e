// The authority's look at a workload token: who it speaks for, or why it is refused.
import { errors, type JWTPayload, jwtVerify } from "jose";
import { isSpiffeId } from "../spiffe-id.ts";
import type { WorkloadTokenKey } from "./workload-token-key.ts";
import {
  maxTokenLifetimeMs,
  serviceAccountSubject,
  type WorkloadIdentityClaims,
  workloadTokenAlgorithm,
} from "./workload-token.ts";

export interface WorkloadTokenVerification {
  /** More than one while the platform changes its key. */
  readonly keys: readonly WorkloadTokenKey[];
  readonly issuer: string;
  readonly audience: string;
  readonly nowMs: number;
  /** Between the issuer's clock and this one. */
  readonly clockSkewMs?: number;
}

export type VerifiedWorkloadToken =
  | { readonly ok: true; readonly identity: WorkloadIdentityClaims; readonly expiresAtMs: number }
  | {
      readonly ok: false;
      readonly code:
        | "malformed"
        | "wrong-algorithm"
        | "unknown-key"
        | "bad-signature"
        | "wrong-issuer"
        | "wrong-audience"
        | "expired"
        | "not-yet-valid"
        | "wrong-claims";
      /** Holds nothing of the token: it may be logged. */
      readonly message: string;
    };

type Refusal = Extract<VerifiedWorkloadToken, { ok: false }>;

/** Ten times what a token of ours has. */
const maxTokenCharacters = 8192;

export async function verifyWorkloadToken(
  token: string,
  verification: WorkloadTokenVerification,
): Promise<VerifiedWorkloadToken> {
  const { keys, issuer, audience, nowMs, clockSkewMs = 0 } = verification;
  if (token.length > maxTokenCharacters)
    return refused("malformed", `it is longer than ${maxTokenCharacters} characters`);
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid }) => {
        const key = keys.find(({ id }) => id === kid);
        if (key === undefined) throw new UnknownKey();
        return key.publicKey;
      },
      {
        algorithms: [workloadTokenAlgorithm],
        typ: "JWT",
        issuer,
        audience,
        requiredClaims: ["exp", "iat", "sub"],
        currentDate: new Date(nowMs),
        clockTolerance: clockSkewMs / 1000,
      },
    );
    return readClaims(payload);
  } catch (error) {
    return refusalFor(error);
  }
}

class UnknownKey extends Error {}

function readClaims(payload: JWTPayload): VerifiedWorkloadToken {
  const claims = payload["kubernetes.io"] as
    | { namespace?: unknown; pod?: { name?: unknown; uid?: unknown }; serviceaccount?: { name?: unknown } }
    | undefined;
  const namespace = claims?.namespace;
  const serviceAccount = claims?.serviceaccount?.name;
  const { name, uid } = claims?.pod ?? {};
  if (
    typeof namespace !== "string" ||
    typeof serviceAccount !== "string" ||
    typeof name !== "string" ||
    typeof uid !== "string" ||
    !isSpiffeId({ trustDomain: "any", namespace, serviceAccount })
  ) {
    return refused("wrong-claims", "it names no service account and pod");
  }
  const identity = { namespace, serviceAccount, pod: { name, uid } };
  if (payload.sub !== serviceAccountSubject(identity))
    return refused("wrong-claims", "its subject and its claims differ");
  if (Array.isArray(payload.aud) && payload.aud.length !== 1)
    return refused("wrong-audience", "it has several audiences");
  const expiresAt = payload.exp!;
  if ((expiresAt - payload.iat!) * 1000 > maxTokenLifetimeMs)
    return refused("wrong-claims", "it lives longer than a day");
  return { ok: true, identity, expiresAtMs: expiresAt * 1000 };
}

function refusalFor(error: unknown): Refusal {
  if (error instanceof UnknownKey) return refused("unknown-key", "its key is none of the platform's");
  if (error instanceof errors.JWTExpired) return refused("expired", "it has expired");
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused("bad-signature", "its signature is wrong");
  if (error instanceof errors.JOSEAlgNotAllowed) return refused("wrong-algorithm", "it is not signed by ES256");
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "iss") return refused("wrong-issuer", "it is of another issuer");
    if (error.claim === "aud") return refused("wrong-audience", "it is for another audience");
    if (error.claim === "nbf") return refused("not-yet-valid", "it is not valid yet");
    return refused("wrong-claims", `its claim ${error.claim} is missing or wrong`);
  }
  if (error instanceof errors.JOSEError) return refused("malformed", "it is no signed JWT");
  throw error;
}

function refused(code: Refusal["code"], message: string): Refusal {
  return { ok: false, code, message: `the workload token is refused: ${message}` };
}
