// The decision about one certificate request: what the caller has proved to be is what it gets, and nothing else.
import type { KeyObject } from "node:crypto";
import { type CertificateRequest, parseCsr } from "../csr/parse-csr.ts";
import { oid } from "../der/object-identifiers.ts";
import { isSpiffeId, type SpiffeId, spiffeIdText } from "../spiffe-id.ts";
import { buildCertificate } from "../x509/build-certificate.ts";
import { type Certificate, parseCertificate } from "../x509/certificate.ts";
import { distinguishedName } from "../x509/distinguished-name.ts";
import {
  authorityKeyIdentifier,
  basicConstraints,
  extendedKeyUsage,
  keyIdentifier,
  keyUsage,
  subjectAlternativeName,
  subjectKeyIdentifier,
} from "../x509/extensions.ts";
import type { SubjectAlternativeName } from "../x509/subject-alternative-names.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { backdateMs } from "./validity.ts";

export interface WorkloadSigningRequest {
  readonly csrPem: string;
  /** What the caller has proved to be, by a token or by its present certificate. */
  readonly identity: SpiffeId;
  readonly ttlMs: number;
}

export interface SigningRules {
  readonly trustDomain: string;
  readonly maxTtlMs: number;
}

export interface IssuedCertificate {
  readonly certificate: Certificate;
  /** The certificate, then the authorities up to and without the root: what the workload sends to its peers. */
  readonly chain: readonly Certificate[];
  readonly chainPem: string;
}

export interface SigningRefusal {
  readonly ok: false;
  readonly code:
    | "malformed-csr"
    | "bad-csr-signature"
    | "unsuitable-key"
    | "foreign-identity"
    | "foreign-trust-domain"
    | "asks-to-be-authority"
    | "ttl-not-allowed"
    | "authority-expired";
  readonly message: string;
  /** For the audit log: who asked, and for which names. */
  readonly identity: string;
  readonly requestedNames: readonly string[];
}

export type SigningResult = ({ readonly ok: true } & IssuedCertificate) | SigningRefusal;

export function signWorkload(
  material: AuthorityMaterial,
  rules: SigningRules,
  request: WorkloadSigningRequest,
  nowMs: number,
): SigningResult {
  const { identity } = request;
  const parsed = parseCsr(request.csrPem);
  const names = parsed.ok ? parsed.request.requestedNames : [];
  const refuse = (code: SigningRefusal["code"], message: string): SigningRefusal => ({
    ok: false,
    code,
    message,
    identity: isSpiffeId(identity) ? spiffeIdText(identity) : JSON.stringify(identity),
    requestedNames: names.map((name) => `${name.type}:${name.value}`),
  });
  if (!parsed.ok) return refuse(parsed.code, parsed.message);
  if (!isSpiffeId(identity) || identity.trustDomain !== rules.trustDomain) {
    return refuse("foreign-trust-domain", `the caller is not of the trust domain ${rules.trustDomain}`);
  }
  const foreign = foreignName(parsed.request, spiffeIdText(identity));
  if (foreign !== undefined) {
    return refuse("foreign-identity", `the request is for ${foreign.value}, the caller is ${spiffeIdText(identity)}`);
  }
  if (parsed.request.asksToBeCa)
    return refuse("asks-to-be-authority", "the request is for the certificate of an authority");
  // Also false for NaN, which no comparison below would stop.
  if (!(request.ttlMs >= 1000 && request.ttlMs <= rules.maxTtlMs)) {
    const limit = `between one second and ${Math.floor(rules.maxTtlMs / 1000)} s`;
    return refuse("ttl-not-allowed", `a life of ${request.ttlMs / 1000} s was asked for, allowed is ${limit}`);
  }
  const endMs = lastMomentMs(material);
  if (endMs <= nowMs) return refuse("authority-expired", "the authority's own certificates have expired");
  const issued = issueLeaf(material, {
    publicKey: parsed.request.publicKey,
    names: [{ type: "uri", value: spiffeIdText(identity) }],
    nowMs,
    ttlMs: request.ttlMs,
  });
  return { ok: true, ...issued };
}

/** Any name that is not the caller's own id counts: a DNS name would speak for a server that it is not. */
function foreignName(request: CertificateRequest, own: string): SubjectAlternativeName | undefined {
  return request.requestedNames.find((name) => name.type !== "uri" || name.value !== own);
}

export interface LeafContents {
  readonly publicKey: KeyObject;
  readonly names: readonly SubjectAlternativeName[];
  /** Absent for workloads: their one name is the URI. */
  readonly commonName?: string;
  readonly nowMs: number;
  readonly ttlMs: number;
}

/** A leaf for both sides of TLS that outlives none of the certificates above it. */
export function issueLeaf(material: AuthorityMaterial, contents: LeafContents): IssuedCertificate {
  const { certificate: issuer } = material;
  const { commonName, nowMs } = contents;
  const rsa = contents.publicKey.asymmetricKeyType === "rsa";
  const der = buildCertificate(
    {
      subject: distinguishedName(commonName === undefined ? {} : { commonName }),
      issuer: issuer.subjectDer,
      notBeforeMs: Math.max(nowMs - backdateMs, issuer.notBeforeMs),
      notAfterMs: Math.min(nowMs + contents.ttlMs, lastMomentMs(material)),
      publicKey: contents.publicKey,
      extensions: [
        basicConstraints({ ca: false }),
        // Key encipherment is for the RSA key exchange of TLS 1.2 alone.
        keyUsage(rsa ? ["digitalSignature", "keyEncipherment"] : ["digitalSignature"]),
        extendedKeyUsage([oid.serverAuth, oid.clientAuth]),
        subjectKeyIdentifier(keyIdentifier(contents.publicKey)),
        authorityKeyIdentifier(issuer.subjectKeyIdentifier ?? keyIdentifier(issuer.publicKey)),
        subjectAlternativeName(contents.names, commonName === undefined),
      ],
    },
    material.key,
  );
  const parsed = parseCertificate(der);
  if (!parsed.ok) throw new Error(`the new certificate is not readable: ${parsed.message}`);
  const chain = [parsed.certificate, ...material.chain];
  return { certificate: parsed.certificate, chain, chainPem: chain.map((one) => one.pem).join("") };
}

/** When the first of the certificates above a leaf ends. Of several roots, the one that reaches furthest counts. */
function lastMomentMs(material: AuthorityMaterial): number {
  const rootsEndMs = Math.max(...material.roots.map((root) => root.notAfterMs));
  return Math.min(material.certificate.notAfterMs, rootsEndMs, ...material.chain.map((one) => one.notAfterMs));
}
