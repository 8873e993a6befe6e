// The object identifiers that certificates and requests of the mesh use (RFC 5280, RFC 2985, RFC 5480, RFC 8017, RFC
// 8410).

export const oid = {
  commonName: "2.5.4.3",
  organization: "2.5.4.10",
  extensionRequest: "1.2.840.113549.1.9.14",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAlternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  nameConstraints: "2.5.29.30",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
  anyExtendedKeyUsage: "2.5.29.37.0",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  ecdsaWithSha384: "1.2.840.10045.4.3.3",
  ecdsaWithSha512: "1.2.840.10045.4.3.4",
  rsaWithSha256: "1.2.840.113549.1.1.11",
  rsaWithSha384: "1.2.840.113549.1.1.12",
  rsaWithSha512: "1.2.840.113549.1.1.13",
  rsaPss: "1.2.840.113549.1.1.10",
  ed25519: "1.3.101.112",
} as const;
