// Makes a new authority for a mesh that brings none along: a root, and an intermediate that does the signing.
import { generateKey } from "../keys/generate-key.ts";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import { trustDomainProblem } from "../trust-domain.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { createAuthorityCertificate } from "./create-authority-certificate.ts";
import { authorityLifetimeMs } from "./validity.ts";

export interface AuthorityOptions {
  readonly trustDomain: string;
  /** Of both keys. */
  readonly algorithm?: KeyAlgorithm;
  /** "root" lets the root itself sign workloads, as Istio's self-made authority does. */
  readonly signer?: "intermediate" | "root";
  readonly lifetimeMs?: number;
  readonly nowMs: number;
}

/**
 * The root's key is forgotten as soon as the intermediate is signed: nobody can steal what nobody has, and both live
 * equally long, so that a new intermediate always comes with a new root. @throws {TypeError} for a trust domain that is
 * none
 */
export async function createAuthority(options: AuthorityOptions): Promise<AuthorityMaterial> {
  const {
    trustDomain,
    algorithm = "P-256",
    signer = "intermediate",
    lifetimeMs = authorityLifetimeMs,
    nowMs,
  } = options;
  const problem = trustDomainProblem(trustDomain);
  if (problem !== undefined) throw new TypeError(problem);
  const shared = { organization: trustDomain, lifetimeMs, nowMs };
  const rootKey = await generateKey(algorithm);
  const root = createAuthorityCertificate({
    ...shared,
    commonName: "Tulle root",
    key: rootKey,
    pathLength: signer === "root" ? 0 : 1,
  });
  if (signer === "root") return { certificate: root, key: rootKey, chain: [], roots: [root] };
  const key = await generateKey(algorithm);
  const certificate = createAuthorityCertificate({
    ...shared,
    commonName: "Tulle intermediate",
    key,
    pathLength: 0,
    issuer: { certificate: root, key: rootKey },
  });
  return { certificate, key, chain: [certificate], roots: [root] };
}
