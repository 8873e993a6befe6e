// The platform hands out short-lived tokens to the workloads that it starts; with one a workload asks for its first
// certificate.
import { randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import { isSpiffeId } from "../spiffe-id.ts";
import type { WorkloadTokenSigningKey } from "./workload-token-key.ts";
import {
  maxTokenLifetimeMs,
  serviceAccountSubject,
  type WorkloadIdentityClaims,
  workloadTokenAlgorithm,
} from "./workload-token.ts";

export interface WorkloadTokenRequest {
  readonly identity: WorkloadIdentityClaims;
  /** Who hands it out, as a URL or a name of the platform. */
  readonly issuer: string;
  /** The only one who may accept it. */
  readonly audience: string;
  /** One hour unless told, a day at most. */
  readonly lifetimeMs?: number;
  readonly nowMs: number;
}

const defaultLifetimeMs = 3_600_000;

/**
 * @throws {TypeError} for names that Kubernetes would not allow: with ":" in one, the subject would name somebody else
 */
export async function issueWorkloadToken(key: WorkloadTokenSigningKey, request: WorkloadTokenRequest): Promise<string> {
  const { identity, issuer, audience, lifetimeMs = defaultLifetimeMs, nowMs } = request;
  const { namespace, serviceAccount, pod } = identity;
  if (!isSpiffeId({ trustDomain: "any", namespace, serviceAccount })) {
    throw new TypeError(`no service account: ${JSON.stringify({ namespace, serviceAccount })}`);
  }
  if (!(lifetimeMs > 0 && lifetimeMs <= maxTokenLifetimeMs))
    throw new TypeError(`no life for a token: ${lifetimeMs} ms`);
  const issuedAt = Math.floor(nowMs / 1000);
  return new SignJWT({ "kubernetes.io": { namespace, pod: { ...pod }, serviceaccount: { name: serviceAccount } } })
    .setProtectedHeader({ alg: workloadTokenAlgorithm, kid: key.id, typ: "JWT" })
    .setIssuer(issuer)
    .setSubject(serviceAccountSubject(identity))
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setNotBefore(issuedAt)
    .setExpirationTime(issuedAt + Math.ceil(lifetimeMs / 1000))
    .setJti(randomUUID())
    .sign(key.privateKey);
}
