// A session that is taken up again carries a judgement of the past: OpenSSL looks at no time then.

/** Milliseconds since 1970; undefined without a certificate. */
export interface CertificateLife {
  readonly validFromMs: number | undefined;
  readonly validToMs: number | undefined;
}

/** OpenSSL's name for a time out of the certificate's life. */
export function staleCertificate({ validFromMs, validToMs }: CertificateLife, nowMs: number): string | undefined {
  if (validFromMs === undefined || validToMs === undefined) return undefined;
  if (nowMs >= validToMs) return "CERT_HAS_EXPIRED";
  return nowMs < validFromMs ? "CERT_NOT_YET_VALID" : undefined;
}
