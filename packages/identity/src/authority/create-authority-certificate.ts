// Makes the certificates of authorities: a root that signs itself, or an intermediate that another authority signs.
import type { KeyObject } from "node:crypto";
import { type Certificate, parseCertificate } from "../x509/certificate.ts";
import { buildCertificate } from "../x509/build-certificate.ts";
import { distinguishedName } from "../x509/distinguished-name.ts";
import {
  authorityKeyIdentifier,
  basicConstraints,
  type Extension,
  keyIdentifier,
  keyUsage,
  subjectKeyIdentifier,
} from "../x509/extensions.ts";
import { backdateMs } from "./validity.ts";

export interface AuthorityCertificateRequest {
  readonly organization: string;
  /**
   * Gets the beginning of the key's identifier appended: two authorities never share a name, so chains are never mixed
   * up.
   */
  readonly commonName: string;
  readonly key: KeyObject;
  /** How many further authorities may stand below it. */
  readonly pathLength: number;
  readonly lifetimeMs: number;
  readonly nowMs: number;
  /** Beside those that every authority has. */
  readonly furtherExtensions?: readonly Extension[];
  /** Absent for a root. */
  readonly issuer?: { readonly certificate: Certificate; readonly key: KeyObject };
}

export function createAuthorityCertificate(request: AuthorityCertificateRequest): Certificate {
  const { key, issuer, nowMs } = request;
  const identifier = keyIdentifier(key);
  const subject = distinguishedName({
    organization: request.organization,
    commonName: `${request.commonName} ${identifier.toString("hex", 0, 4)}`,
  });
  const issuerIdentifier =
    issuer === undefined ? identifier : (issuer.certificate.subjectKeyIdentifier ?? keyIdentifier(issuer.key));
  const der = buildCertificate(
    {
      subject,
      issuer: issuer?.certificate.subjectDer ?? subject,
      notBeforeMs: Math.max(nowMs - backdateMs, issuer?.certificate.notBeforeMs ?? -Infinity),
      notAfterMs: Math.min(nowMs + request.lifetimeMs, issuer?.certificate.notAfterMs ?? Infinity),
      publicKey: key,
      extensions: [
        basicConstraints({ ca: true, pathLength: request.pathLength }),
        keyUsage(["keyCertSign", "crlSign"]),
        subjectKeyIdentifier(identifier),
        authorityKeyIdentifier(issuerIdentifier),
        ...(request.furtherExtensions ?? []),
      ],
    },
    issuer?.key ?? key,
  );
  const parsed = parseCertificate(der);
  if (!parsed.ok) throw new Error(`the new certificate is not readable: ${parsed.message}`);
  return parsed.certificate;
}
