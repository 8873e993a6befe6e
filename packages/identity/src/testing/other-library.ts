// A second reader of certificates and requests, as an oracle beside OpenSSL. Tests alone load it: it costs 25 MB.

// Its dependency injection needs this to be there first.
await import("reflect-metadata");

export const {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
} = await import("@peculiar/x509");
