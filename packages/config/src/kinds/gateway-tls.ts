/** The `tls` of a Gateway's server, and what has to go together in it. Rules are those of Istio's validation. */
import { boolean, enumeration, list, narrowing, notYet, object, optional, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import type { Format } from "../schema/formats.ts";
import { nonEmpty, quote, secretName } from "../schema/formats.ts";

const modes = ["PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"] as const;

/** From the oldest on. */
/** What is spoken at least unless a Gateway says otherwise (Istio: minProtocolVersion). */
const defaultOldest = "TLSV1_2";
const versions = ["TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"] as const;

/** Suites up to TLS 1.2 that Envoy's TLS library knows (BoringSSL); those of TLS 1.3 are always the same. */
const knownCipherSuites: readonly string[] = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-SHA",
  "ECDHE-RSA-AES128-SHA",
  "ECDHE-ECDSA-AES256-SHA",
  "ECDHE-RSA-AES256-SHA",
  "AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-SHA",
  "AES256-SHA",
];

const cipherSuite: Format = {
  name: "cipher suite",
  description: `one of ${knownCipherSuites.join(", ")}`,
  check: () => undefined,
  warn: (value) =>
    knownCipherSuites.includes(value)
      ? undefined
      : `${quote(value)} is no cipher suite that proxies know; it is left out`,
};

/** Those that a proxy takes, each once: one unknown name would make it refuse the listener. */
export function usableCipherSuites(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => knownCipherSuites.includes(name));
}

const spkiHash: Format = {
  name: "hash of a public key",
  description: "the SHA-256 of the public key (SubjectPublicKeyInfo), in base64",
  check: (value) =>
    /^[A-Za-z0-9+/]{43}=$/.test(value) ? undefined : "it is no SHA-256 in base64 (44 characters, the last one a =)",
};

const certificateHash: Format = {
  name: "hash of a certificate",
  description: "the SHA-256 of the certificate, in hexadecimal, with or without colons",
  check: (value) =>
    /^(?:[0-9A-Fa-f]{64}|(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2})$/.test(value)
      ? undefined
      : "it is no SHA-256 in hexadecimal (64 digits, with or without colons between pairs)",
};

const fileName = string(nonEmpty);

const serverTlsFields = {
  httpsRedirect: optional(boolean(), "Answer plain HTTP with a redirect to HTTPS."),
  mode: optional(enumeration(modes), "How TLS is ended here; PASSTHROUGH when missing."),
  serverCertificate: optional(fileName, "File with the certificate chain, on the gateway's machine."),
  privateKey: optional(fileName, "File with the private key, on the gateway's machine."),
  caCertificates: optional(fileName, "File with the authorities that clients are checked against."),
  caCrl: optional(fileName, "File with revoked client certificates."),
  credentialName: optional(string(secretName), "Secret with certificate and key, in the gateway pods' namespace."),
  credentialNames: optional(
    list(string(secretName), { minItems: 1 }),
    "Several such Secrets, of which the one that fits the client is shown.",
  ),
  subjectAltNames: optional(list(string(nonEmpty)), "Names of which a client certificate has to have one."),
  verifyCertificateSpki: optional(list(string(spkiHash)), "Accepted hashes of the public key of client certificates."),
  verifyCertificateHash: optional(list(string(certificateHash)), "Accepted hashes of client certificates."),
  minProtocolVersion: optional(enumeration(versions), "Oldest TLS version; 1.2 when missing."),
  maxProtocolVersion: optional(enumeration(versions), "Newest TLS version; 1.3 when missing."),
  cipherSuites: optional(list(string(cipherSuite)), "Cipher suites up to TLS 1.2; unknown ones are left out."),
  tlsCertificates: optional(
    list(
      object({
        serverCertificate: optional(fileName, "File with the certificate chain."),
        privateKey: optional(fileName, "File with the private key."),
        caCertificates: notYet(fileName, "Not used; the field beside the list says it."),
      }),
      { minItems: 1 },
    ),
    "Several certificates from files, of which the one that fits the client is shown.",
  ),
  caCertCredentialName: narrowing(
    string(secretName),
    "Secret with the authorities for clients.",
    "clients would be checked against other authorities",
  ),
  insecureSkipVerify: notYet(boolean(), "Clients whose certificate is not valid are let through."),
} as const;

type ServerTlsFields = ObjectValue<typeof serverTlsFields>;

/** Modes in which the gateway shows a certificate of its own choice. */
const ownCertificate: ReadonlySet<string> = new Set(["SIMPLE", "MUTUAL", "OPTIONAL_MUTUAL"]);
const asksClients: ReadonlySet<string> = new Set(["MUTUAL", "OPTIONAL_MUTUAL"]);

function certificateFits(tls: ServerTlsFields, report: Report): void {
  const { mode = "PASSTHROUGH", credentialName, credentialNames = [], tlsCertificates = [] } = tls;
  if (mode === "ISTIO_MUTUAL") {
    for (const name of ["serverCertificate", "privateKey", "caCertificates", ...sourceNames] as const) {
      if (!isGiven(tls[name])) continue;
      report({ path: [name], message: "ISTIO_MUTUAL takes no certificate: the workload's own is used" });
    }
    return;
  }
  if (!ownCertificate.has(mode)) {
    for (const name of [...fileNames, "caCrl", ...sourceNames] as const) {
      if (!isGiven(tls[name])) continue;
      report({ code: "IST0133", path: [name], message: `${mode} uses no certificate: connections pass as they are` });
    }
  }
  const sources = [
    ...(tls.serverCertificate !== undefined && tls.privateKey !== undefined ? ["serverCertificate" as const] : []),
    ...sourceNames.filter((name) => isGiven(tls[name])),
  ];
  if (sources.length > 1) {
    report({ path: [sources[1]!], message: `only one of "${sources.join('", "')}" may name the certificate` });
  }
  if (!ownCertificate.has(mode)) return;
  revocationFits(mode, tls, report);
  if (credentialName !== undefined || credentialNames.length > 0) {
    const ignored = fileNames.filter((name) => tls[name] !== undefined);
    for (const name of sources.length > 1 ? [] : ignored) {
      report({ code: "IST0133", path: [name], message: `it is not used: "${sources[0]!}" names the certificate` });
    }
    return;
  }
  const needed = fileNames.filter((name) =>
    name === "caCertificates" ? asksClients.has(mode) : tlsCertificates.length === 0,
  );
  const missing: string[] = needed.filter((name) => tls[name] === undefined);
  tlsCertificates.forEach((each, index) => {
    for (const name of ["serverCertificate", "privateKey"] as const) {
      if (each[name] === undefined) missing.push(`tlsCertificates[${index}].${name}`);
    }
  });
  if (missing.length === 0) return;
  report({
    path: ["mode"],
    message: `${mode} needs a certificate: ${missing.map((name) => `"${name}"`).join(", ")} missing`,
    suggestion: 'Name a Secret by "credentialName", or files of the gateway\'s machine.',
  });
}

const fileNames = ["serverCertificate", "privateKey", "caCertificates"] as const;
const sourceNames = ["credentialName", "credentialNames", "tlsCertificates"] as const;

function isGiven(value: string | readonly unknown[] | undefined): boolean {
  return value !== undefined && value.length > 0;
}

/** Istio looks at the file where certificates are files as well. */
function revocationFits(
  mode: string,
  { caCrl, credentialName, credentialNames = [] }: ServerTlsFields,
  report: Report,
): void {
  if (caCrl === undefined || mode !== "SIMPLE" || credentialName !== undefined || credentialNames.length > 0) return;
  report({ path: ["caCrl"], message: "SIMPLE asks clients for no certificate, so that none can be revoked" });
}

function versionsFit({ minProtocolVersion, maxProtocolVersion }: ServerTlsFields, report: Report): void {
  const chosen = (version: (typeof versions)[number] | undefined): (typeof versions)[number] | undefined =>
    version === "TLS_AUTO" ? undefined : version;
  const most = chosen(maxProtocolVersion);
  const least = chosen(minProtocolVersion) ?? defaultOldest;
  if (most === undefined || versions.indexOf(least) <= versions.indexOf(most)) return;
  const oldest =
    chosen(minProtocolVersion) === undefined ? `the oldest one, which is ${least} unless it is set` : "the oldest one";
  report({ path: ["maxProtocolVersion"], message: `the newest version is older than ${oldest}` });
}

/**
 * Envoy refuses a check of names without an authority: anybody could write any name into a certificate of their own.
 */
function namesAreVouchedFor({ mode, subjectAltNames = [] }: ServerTlsFields, report: Report): void {
  if (mode === "SIMPLE" && subjectAltNames.length > 0) {
    report({
      code: "IST0133",
      path: ["subjectAltNames"],
      message: "SIMPLE does not check client certificates, so that their names have no effect",
      suggestion: "Use MUTUAL or OPTIONAL_MUTUAL.",
    });
  }
}

/** The Secrets with the certificates of a server, in their order. */
export function serverCredentialNames({
  credentialName,
  credentialNames = [],
}: Pick<ServerTlsFields, "credentialName" | "credentialNames">): readonly string[] {
  return credentialName === undefined ? credentialNames : [credentialName];
}

export const serverTls = object(serverTlsFields, { rules: [certificateFits, versionsFit, namesAreVouchedFor] });
