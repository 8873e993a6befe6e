// A Secret resource into what TLS contexts and filters hold (extensions.transport_sockets.tls.v3.Secret). Keys and
// certificates are tried here, so that a bad one is refused by name and the one before it goes on; errors never quote
// what is secret.
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type {
  CertificateValidationContext,
  TlsCertificate as TlsCertificateMessage,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import type { Secret as SecretMessage } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { peerNames } from "../tls/peer-names.ts";
import type { RevocationList, Secret, TlsCertificate, TrustedCa, ValidationContext } from "../tls/secret.ts";
import { checkFields } from "../fields/check-fields.ts";
import { compilePeerNameMatches } from "./compile-peer-names.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import { readDataSource, type SourcedData } from "../fields/read-data-source.ts";
import { secretMessage } from "./tls-fields.ts";

/** The environment that DataSources may name. */
type Environment = Readonly<Record<string, string | undefined>>;

export function compileSecret(message: SecretMessage, environment: Environment): Compiled<Secret> {
  const problems = new Problems();
  return compiled(buildSecret(message, environment, Place.root, problems), problems);
}

function buildSecret(
  message: SecretMessage,
  environment: Environment,
  place: Place,
  problems: Problems,
): Secret | undefined {
  checkFields(secretMessage, message, place, problems);
  const { type } = message;
  switch (type.case) {
    case "tlsCertificate":
      return buildTlsCertificate(type.value, environment, place.field("tls_certificate"), problems);
    case "validationContext":
      return buildValidationContext(type.value, environment, place.field("validation_context"), problems);
    case "genericSecret": {
      const at = place.field("generic_secret").field("secret");
      const data = readDataSource(type.value.secret, environment, at, problems);
      if (data === undefined) problems.error(at, "value is required");
      return data && { type: "generic_secret", secret: data.bytes };
    }
    case "sessionTicketKeys":
      problems.error(place.field("session_ticket_keys"), "is not supported");
      return undefined;
    case undefined:
      problems.error(place, "Secret type not implemented");
      return undefined;
  }
}

/** One or more whole certificates, and text around them. */
function certificatesOf(pem: string): readonly X509Certificate[] | undefined {
  const blocks = pem.match(
    /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g,
  );
  if (blocks === null) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

export function buildTlsCertificate(
  message: TlsCertificateMessage,
  environment: Environment,
  place: Place,
  problems: Problems,
): TlsCertificate | undefined {
  const chainData = readDataSource(message.certificateChain, environment, place.field("certificate_chain"), problems);
  const keyData = readDataSource(message.privateKey, environment, place.field("private_key"), problems);
  if (problems.hasErrors) return undefined;
  if (chainData === undefined || keyData === undefined) {
    problems.error(place, "TlsCertificate must have both certificate_chain and private_key");
    return undefined;
  }
  const chainPem = chainData.bytes.toString("latin1");
  const chain = certificatesOf(chainPem);
  if (chain === undefined) {
    problems.error(place.field("certificate_chain"), `Failed to load certificate chain from ${chainData.origin}`);
    return undefined;
  }
  const password = readDataSource(message.password, environment, place.field("password"), problems);
  const key = privateKey(keyData, password);
  const at = place.field("private_key");
  const failure = `Failed to load private key from ${keyData.origin}`;
  if (key === undefined) {
    problems.error(at, `${failure}, Cause: it is no private key in PEM, or its password is wrong`);
    return undefined;
  }
  const leaf = chain[0]!;
  if (!leaf.checkPrivateKey(key)) {
    problems.error(at, `${failure}, Cause: KEY_VALUES_MISMATCH: the key is not that of the certificate`);
    return undefined;
  }
  const keyPem = key.export({ type: "pkcs8", format: "pem" });
  const problem = openSslProblem(chainPem, keyPem);
  if (problem !== undefined) {
    problems.error(place, `Failed to load certificate chain from ${chainData.origin}: ${problem}`);
    return undefined;
  }
  return {
    type: "tls_certificate",
    chainPem,
    keyPem,
    chain,
    keyType: key.asymmetricKeyType ?? "",
    dnsNames: peerNames(leaf)
      .filter(({ type }) => type === "dns")
      .map(({ value }) => value.toLowerCase()),
    digest: createHash("sha256").update(chainPem).update("\0").update(keyPem).digest("hex"),
  };
}

function privateKey(data: SourcedData, password: SourcedData | undefined): KeyObject | undefined {
  const pem = data.bytes.toString("latin1");
  if (!pem.includes("-----BEGIN ")) return undefined;
  try {
    // Without a passphrase OpenSSL would ask the terminal for one.
    return createPrivateKey({ key: pem, format: "pem", passphrase: password?.bytes.toString() ?? "" });
  } catch {
    return undefined;
  }
}

/** What OpenSSL has against the pair, such as a key that is too small; asked now, so that no handshake finds it out. */
function openSslProblem(cert: string, key: string): string | undefined {
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

const hexDigest = /^[0-9a-f]{64}$/;

export function buildValidationContext(
  message: CertificateValidationContext,
  environment: Environment,
  place: Place,
  problems: Problems,
): ValidationContext {
  const hashes = message.verifyCertificateHash.map((hash, index) => {
    const hex = (hash.length === 95 ? hash.replaceAll(":", "") : hash).toLowerCase();
    const at = place.field("verify_certificate_hash", index);
    if (!hexDigest.test(hex)) problems.error(at, `Invalid hex-encoded SHA-256 ${hash}`);
    return hex;
  });
  for (const [index, spki] of message.verifyCertificateSpki.entries()) {
    const isDigest = Buffer.from(spki, "base64").length === 32;
    if (!isDigest)
      problems.error(place.field("verify_certificate_spki", index), `Invalid base64-encoded SHA-256 ${spki}`);
  }
  return {
    type: "validation_context",
    trustedCa: trustedCa(message, environment, place.field("trusted_ca"), problems),
    spkiHashes: new Set(message.verifyCertificateSpki),
    certificateHashes: new Set(hashes),
    nameMatches: compilePeerNameMatches(message, place, problems),
    crl: revocationList(message, environment, place.field("crl"), problems),
    checksLeafRevocationOnly: message.onlyVerifyLeafCertCrl,
    allowsExpired: message.allowExpiredCertificate,
    acceptsUntrusted: message.trustChainVerification === 1,
    maxVerifyDepth: message.maxVerifyDepth ?? 100,
  };
}

function trustedCa(
  message: CertificateValidationContext,
  environment: Environment,
  place: Place,
  problems: Problems,
): TrustedCa | undefined {
  const data = readDataSource(message.trustedCa, environment, place, problems);
  if (data === undefined || data.bytes.length === 0) return undefined;
  const pem = data.bytes.toString("latin1");
  const certificates = certificatesOf(pem);
  if (certificates === undefined) {
    problems.error(place, `Failed to load trusted CA certificates from ${data.origin}`);
    return undefined;
  }
  return { pem, certificates, digest: createHash("sha256").update(pem).digest("hex") };
}

function revocationList(
  message: CertificateValidationContext,
  environment: Environment,
  place: Place,
  problems: Problems,
): RevocationList | undefined {
  const data = readDataSource(message.crl, environment, place, problems);
  if (data === undefined || data.bytes.length === 0) return undefined;
  const pem = data.bytes.toString("latin1");
  try {
    createSecureContext({ crl: pem });
  } catch {
    problems.error(place, `Failed to load CRL from ${data.origin}`);
    return undefined;
  }
  return { pem, digest: createHash("sha256").update(pem).digest("hex") };
}
