// How long a certificate has to live, for metrics, and when that is worth a warning: long before anything breaks.
import type { Certificate } from "../x509/certificate.ts";

/**
 * - `good`: nothing to do.
 * - `warning`: a workload's renewal has failed for a sixth of its life; an authority has a tenth of its life left (a
 *   year of ten).
 * - `critical`: a workload has a tenth of its life left, an authority a fiftieth (ten weeks of ten years).
 * - `expired`: peers refuse it.
 */
export type ExpiryLevel = "good" | "warning" | "critical" | "expired";

export interface CertificateExpiry {
  readonly role: "root" | "intermediate" | "workload";
  readonly subject: string;
  readonly serial: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Negative once it has expired. */
  readonly remainingMs: number;
  readonly level: ExpiryLevel;
}

const limits = {
  workload: { warning: 1 / 3, critical: 1 / 10 },
  intermediate: { warning: 1 / 10, critical: 1 / 50 },
  root: { warning: 1 / 10, critical: 1 / 50 },
} as const;

/**
 * `startMs` is where its life is counted from: for a workload when it was obtained, because a short life may be mostly
 * backdated.
 */
export function certificateExpiry(
  role: CertificateExpiry["role"],
  certificate: Certificate,
  nowMs: number,
  startMs: number = certificate.notBeforeMs,
): CertificateExpiry {
  const { subject, serial, notBeforeMs, notAfterMs } = certificate;
  const remainingMs = notAfterMs - nowMs;
  const share = remainingMs / Math.max(1, notAfterMs - startMs);
  return { role, subject, serial, notBeforeMs, notAfterMs, remainingMs, level: levelOf(share, limits[role]) };
}

function levelOf(share: number, limit: { readonly warning: number; readonly critical: number }): ExpiryLevel {
  if (share <= 0) return "expired";
  if (share < limit.critical) return "critical";
  return share < limit.warning ? "warning" : "good";
}
