// Workloads for tests: certificates as the authority issues them, and ones that no authority should have issued.
import assert from "node:assert/strict";
import type { KeyObject } from "node:crypto";
import type { AuthorityMaterial } from "../authority/authority-material.ts";
import { CertificateAuthority } from "../authority/certificate-authority.ts";
import { createAuthority } from "../authority/create-authority.ts";
import { createCsr } from "../csr/create-csr.ts";
import { oid } from "../der/object-identifiers.ts";
import { generateKey } from "../keys/generate-key.ts";
import { privateKeyPem } from "../keys/private-key.ts";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import type { SpiffeId } from "../spiffe-id.ts";
import { checkWorkloadCertificate, type WorkloadCertificate } from "../workload/workload-certificate.ts";
import { buildCertificate } from "../x509/build-certificate.ts";
import { type Certificate, parseCertificate, parseCertificates } from "../x509/certificate.ts";
import { distinguishedName } from "../x509/distinguished-name.ts";
import {
  authorityKeyIdentifier,
  basicConstraints,
  type Extension,
  extendedKeyUsage,
  keyIdentifier,
  keyUsage,
  subjectAlternativeName,
} from "../x509/extensions.ts";
import type { SubjectAlternativeName } from "../x509/subject-alternative-names.ts";

/** The time of tests that have no reason for another one. */
export const nowMs = Date.parse("2030-06-01T12:00:00Z");
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

export const catalog: SpiffeId = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "catalog" };

/** An authority with a clock of its own, for `cluster.local`. */
export async function newAuthority(
  options: {
    readonly algorithm?: KeyAlgorithm;
    readonly signer?: "intermediate" | "root";
    readonly nowMs?: number;
  } = {},
): Promise<CertificateAuthority> {
  const atMs = options.nowMs ?? nowMs;
  const signing = await createAuthority({ trustDomain: "cluster.local", ...options, nowMs: atMs });
  return new CertificateAuthority({
    trustDomain: "cluster.local",
    state: { phase: "steady", signing },
    now: () => atMs,
  });
}

/** What the agent would hold after a request for this identity. */
export async function issueTo(
  authority: CertificateAuthority,
  request: {
    readonly identity?: SpiffeId;
    readonly algorithm?: KeyAlgorithm;
    readonly ttlMs?: number;
    readonly nowMs?: number;
  } = {},
): Promise<WorkloadCertificate> {
  const { identity = catalog, algorithm, ttlMs, nowMs: atMs = nowMs } = request;
  const key = await generateKey(algorithm);
  const csrPem = createCsr({ key, spiffeId: identity });
  const signed = authority.signWorkload({ csrPem, identity, ...(ttlMs === undefined ? {} : { ttlMs }) });
  assert.ok(signed.ok, signed.ok ? "" : signed.message);
  const parts = {
    keyPem: privateKeyPem(key),
    chainPem: signed.chainPem,
    rootsPem: authority.trustBundlePem,
    obtainedAtMs: atMs,
  };
  const checked = checkWorkloadCertificate(parts, atMs);
  assert.ok(checked.ok, checked.ok ? "" : checked.message);
  return checked.certificate;
}

export interface LeafPlan {
  readonly issuer: Pick<AuthorityMaterial, "certificate" | "key">;
  readonly key?: KeyObject;
  readonly names?: readonly SubjectAlternativeName[];
  readonly subject?: string;
  /** Instead of the subject. */
  readonly subjectDer?: Uint8Array;
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
  /** Instead of those of an ordinary leaf; the names are added. */
  readonly extensions?: readonly Extension[];
}

/** A certificate by plan, however wrong. */
export async function plannedLeaf(plan: LeafPlan): Promise<Certificate> {
  const { issuer, names = [{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/catalog" }] } = plan;
  const der = buildCertificate(
    {
      subject: plan.subjectDer ?? distinguishedName(plan.subject === undefined ? {} : { commonName: plan.subject }),
      issuer: issuer.certificate.subjectDer,
      notBeforeMs: plan.notBeforeMs ?? nowMs - 60_000,
      notAfterMs: plan.notAfterMs ?? nowMs + dayMs,
      publicKey: plan.key ?? (await generateKey()),
      extensions: [
        ...(plan.extensions ?? [
          basicConstraints({ ca: false }),
          keyUsage(["digitalSignature"]),
          extendedKeyUsage([oid.serverAuth, oid.clientAuth]),
        ]),
        authorityKeyIdentifier(keyIdentifier(issuer.key)),
        ...(names.length === 0 ? [] : [subjectAlternativeName(names, plan.subject === undefined)]),
      ],
    },
    issuer.key,
  );
  const parsed = parseCertificate(der);
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.message);
  return parsed.certificate;
}

export function certificatesOf(pem: string): readonly Certificate[] {
  const parsed = parseCertificates(pem);
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.message);
  return parsed.certificates;
}
