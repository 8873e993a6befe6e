// A workload's identity as one immutable value: key, chain and trusted roots belong together and are only ever replaced
// together.
import { readFile } from "node:fs/promises";
import { type CertificateExpiry, certificateExpiry } from "../authority/certificate-expiry.ts";
import { parsePrivateKey, publicKeyInfo } from "../keys/private-key.ts";
import { writeSecretFile } from "../secret-file.ts";
import type { SpiffeId } from "../spiffe-id.ts";
import { type Certificate, parseCertificates } from "../x509/certificate.ts";
import { verifyPeer } from "./verify-peer.ts";

export interface WorkloadCertificate {
  readonly spiffeId: SpiffeId;
  /** PKCS #8. */
  readonly keyPem: string;
  /** Sent to peers: the leaf, then the authorities up to and without the root. */
  readonly chainPem: string;
  /** Peers are verified with these; two or more while the mesh changes its root. */
  readonly rootsPem: string;
  readonly leaf: Certificate;
  readonly roots: readonly Certificate[];
  /** By this machine's clock: the half of its life is counted from here, not from the backdated beginning. */
  readonly obtainedAtMs: number;
}

export interface WorkloadCertificateParts {
  readonly keyPem: string;
  readonly chainPem: string;
  readonly rootsPem: string;
  readonly obtainedAtMs: number;
}

export type CheckedWorkloadCertificate =
  | { readonly ok: true; readonly certificate: WorkloadCertificate }
  | { readonly ok: false; readonly message: string };

/**
 * Takes only what peers would accept: the key's own certificate, valid now, with a chain that leads to one of the
 * roots.
 */
export function checkWorkloadCertificate(parts: WorkloadCertificateParts, nowMs: number): CheckedWorkloadCertificate {
  const key = parsePrivateKey(parts.keyPem);
  if (key === undefined) return { ok: false, message: "the workload's private key is not readable" };
  const chain = parseCertificates(parts.chainPem);
  if (!chain.ok) return { ok: false, message: `the workload's chain: ${chain.message}` };
  const roots = parseCertificates(parts.rootsPem);
  if (!roots.ok) return { ok: false, message: `the trusted roots: ${roots.message}` };
  const leaf = chain.certificates[0]!;
  if (!publicKeyInfo(key).equals(publicKeyInfo(leaf.publicKey))) {
    return { ok: false, message: "the certificate is not for the workload's key" };
  }
  const verified = verifyPeer({
    chain: chain.certificates.map((one) => one.der),
    roots: roots.certificates,
    trustDomains: "any",
    peerIs: "client",
    nowMs,
  });
  if (!verified.ok) return verified;
  const { keyPem, chainPem, rootsPem, obtainedAtMs } = parts;
  const { spiffeId } = verified;
  const certificate = { spiffeId, keyPem, chainPem, rootsPem, leaf, roots: roots.certificates, obtainedAtMs };
  return { ok: true, certificate: Object.freeze(certificate) };
}

/** How long it has to live, for the agent's metrics and warnings. */
export function workloadExpiry(certificate: WorkloadCertificate, nowMs: number): CertificateExpiry {
  return certificateExpiry("workload", certificate.leaf, nowMs, certificate.obtainedAtMs);
}

/** Keeps it over a restart, mode 0600. */
export async function writeWorkloadCertificate(file: string, certificate: WorkloadCertificate): Promise<void> {
  const { keyPem, chainPem, rootsPem, obtainedAtMs } = certificate;
  await writeSecretFile(file, `${JSON.stringify({ keyPem, chainPem, rootsPem, obtainedAtMs }, undefined, 2)}\n`);
}

/** Undefined when there is no file; an error for one that is damaged or whose certificate is no longer good. */
export async function readWorkloadCertificate(
  file: string,
  nowMs: number,
): Promise<CheckedWorkloadCertificate | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? undefined : { ok: false, message: `${file} cannot be read (${code ?? String(error)})` };
  }
  const parts = parseParts(text);
  return parts === undefined
    ? { ok: false, message: `${file} does not hold a workload's certificate` }
    : checkWorkloadCertificate(parts, nowMs);
}

function parseParts(text: string): WorkloadCertificateParts | undefined {
  let value: Partial<Record<keyof WorkloadCertificateParts, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return undefined;
  }
  const { keyPem, chainPem, rootsPem, obtainedAtMs } = value ?? {};
  return typeof keyPem === "string" &&
    typeof chainPem === "string" &&
    typeof rootsPem === "string" &&
    typeof obtainedAtMs === "number" &&
    Number.isFinite(obtainedAtMs)
    ? { keyPem, chainPem, rootsPem, obtainedAtMs }
    : undefined;
}
