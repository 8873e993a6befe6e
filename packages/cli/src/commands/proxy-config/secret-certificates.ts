// What the commands about certificates read out of a proxy's secrets: which certificates, whose, and until when.
import { X509Certificate } from "node:crypto";
import type { SecretDump } from "../../proxy-admin/proxy-dump.ts";

/** One certificate of a secret, or the secret itself where it holds none. */
export interface SecretRow {
  readonly name: string;
  readonly type: "Cert Chain" | "CA" | "Generic" | "";
  readonly status: SecretDump["state"];
  /** Of a chain: all of its certificates are. */
  readonly valid?: boolean;
  /** Hexadecimal, in lower case and without leading zeros. */
  readonly serialNumber?: string;
  readonly subject?: string;
  /** ISO 8601. */
  readonly notAfter?: string;
  readonly notBefore?: string;
  /** Of the SPIFFE ID in the certificate. */
  readonly trustDomain?: string;
}

/** A chain has one row, that of its leaf; authorities have one each. */
export function secretRows(dump: SecretDump, nowMs: number): readonly SecretRow[] {
  const { name, state: status, secret } = dump;
  const chain = certificatesIn(secret?.tls_certificate?.certificate_chain);
  if (chain.length > 0) return [{ ...row(name, "Cert Chain", status, chain[0]!), valid: chain.every(isValid(nowMs)) }];
  if (secret?.tls_certificate !== undefined) return [{ name, type: "Cert Chain", status, valid: false }];
  const authorities = certificatesIn(secret?.validation_context?.trusted_ca);
  if (authorities.length > 0) {
    return authorities.map((each) => ({ ...row(name, "CA", status, each), valid: isValid(nowMs)(each) }));
  }
  if (secret?.validation_context !== undefined) return [{ name, type: "CA", status, valid: false }];
  return [{ name, type: secret?.generic_secret === undefined ? "" : "Generic", status }];
}

/** In their order; empty where there is nothing that can be read. Files are the proxy's own, and are not opened. */
export function certificatesIn(
  source: { readonly inline_bytes?: string; readonly inline_string?: string } = {},
): X509Certificate[] {
  const pem = source.inline_string ?? Buffer.from(source.inline_bytes ?? "", "base64").toString("latin1");
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

export function serialOf(certificate: X509Certificate): string {
  return certificate.serialNumber.toLowerCase().replace(/^0+(?=.)/, "");
}

function row(
  name: string,
  type: "Cert Chain" | "CA",
  status: SecretRow["status"],
  certificate: X509Certificate,
): SecretRow {
  const trustDomain = /\bURI:spiffe:\/\/([^/,\s]+)/.exec(certificate.subjectAltName ?? "")?.[1];
  return {
    name,
    type,
    status,
    serialNumber: serialOf(certificate),
    subject: subjectOf(certificate),
    notAfter: timeText(certificate.validToDate),
    notBefore: timeText(certificate.validFromDate),
    ...(trustDomain === undefined ? {} : { trustDomain }),
  };
}

/** One line; workloads' leaves have none, which Node's types do not say. */
export function subjectOf({ subject }: { readonly subject: string | undefined }): string {
  return subject?.replaceAll("\n", ", ") ?? "";
}

function isValid(nowMs: number): (certificate: X509Certificate) => boolean {
  return ({ validFromDate, validToDate }) => validFromDate.getTime() <= nowMs && nowMs <= validToDate.getTime();
}

/** Certificates know whole seconds. */
function timeText(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}
