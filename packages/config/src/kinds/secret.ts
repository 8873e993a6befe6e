/**
 * Secret: certificates and keys that gateways show to clients, and the authorities that clients are checked against.
 * Nothing of its content may come into a finding: the fields are marked, and the rules speak of keys of the mapping
 * alone.
 */
import { boolean, map, object, optional, required, secret as concealed, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { base64, secretKey } from "../schema/formats.ts";
import { checkCertificates, checkKeyPair, checkRevocationList, isPem } from "../rules/secret-material.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

/** Type of a Secret that holds a certificate and its key. */
export const tlsSecretType = "kubernetes.io/tls";

const secretFields = {
  metadata: required(subdomainNamedMetadata, "Metadata."),
  type: optional(string(), "kubernetes.io/tls for a certificate with its key; Opaque when missing."),
  data: concealed(optional(map(string(base64), secretKey), "Values by key, in base64.")),
  stringData: concealed(optional(map(string(), secretKey), "Values by key, as text; they beat those of data.")),
  immutable: optional(boolean(), "Kubernetes refuses changes; nothing else is decided by it."),
} as const;

type SecretFields = Pick<ObjectValue<typeof secretFields>, "type" | "data" | "stringData">;

/** The value under a key of a Secret's data; undefined where there is none. Text is UTF-8. */
export function secretValue({ data, stringData }: SecretFields, key: string): Buffer | undefined {
  if (stringData !== undefined && Object.hasOwn(stringData, key)) return Buffer.from(stringData[key]!, "utf8");
  if (data !== undefined && Object.hasOwn(data, key)) return Buffer.from(data[key]!, "base64");
  return undefined;
}

/** All keys of a Secret's data. */
export function secretKeys({ data = {}, stringData = {} }: SecretFields): readonly string[] {
  return [...new Set([...Object.keys(data), ...Object.keys(stringData)])];
}

/** The two spellings of a certificate with its key, in the order in which Istio looks for them. */
export const keyPairNames = [
  { certificate: "cert", privateKey: "key" },
  { certificate: "tls.crt", privateKey: "tls.key" },
] as const;

/** The same for authorities and their revocation lists. */
export const authorityNames = [
  { certificates: "cacert", revocationList: "crl" },
  { certificates: "ca.crt", revocationList: "ca.crl" },
] as const;

function tlsHasBoth(fields: SecretFields, report: Report): void {
  if (fields.type !== tlsSecretType) return;
  for (const key of ["tls.crt", "tls.key"]) {
    if ((secretValue(fields, key)?.length ?? 0) > 0) continue;
    report({
      path: ["data"],
      message: `a Secret of type ${tlsSecretType} needs "${key}"`,
      suggestion: 'Put the certificate chain under "tls.crt" and its private key under "tls.key", both as PEM.',
    });
  }
}

/** Applications have Secrets with keys of the same names: what is no PEM, and does not claim to be, is theirs. */
function pairsMatch(fields: SecretFields, report: Report): void {
  for (const { certificate, privateKey } of keyPairNames) {
    const [chain, key] = [secretValue(fields, certificate), secretValue(fields, privateKey)];
    if (chain === undefined || key === undefined) continue;
    const isTls = fields.type === tlsSecretType && certificate === "tls.crt";
    if (!isTls && !(isPem(chain) && isPem(key))) continue;
    const problem = checkKeyPair(chain, key);
    if (problem === undefined) continue;
    const at = problem.part === "key" ? privateKey : certificate;
    report({ path: [holder(fields, at), at], message: `"${at}": ${problem.message}` });
  }
  for (const { certificates, revocationList } of authorityNames) {
    const [bundle, list] = [secretValue(fields, certificates), secretValue(fields, revocationList)];
    const isTls = fields.type === tlsSecretType && certificates === "ca.crt";
    if (bundle !== undefined && (isTls || isPem(bundle))) {
      const message = checkCertificates(bundle);
      if (message !== undefined) {
        report({ path: [holder(fields, certificates), certificates], message: `"${certificates}": ${message}` });
      }
    }
    if (list !== undefined && (isTls || isPem(list))) {
      const message = checkRevocationList(list);
      if (message !== undefined) {
        report({ path: [holder(fields, revocationList), revocationList], message: `"${revocationList}": ${message}` });
      }
    }
  }
}

function holder({ stringData }: SecretFields, key: string): "data" | "stringData" {
  return stringData !== undefined && Object.hasOwn(stringData, key) ? "stringData" : "data";
}

export const secret = defineKind({
  kind: "Secret",
  plural: "secrets",
  shortNames: [],
  apiVersions: ["v1"],
  scope: "Namespaced",
  affects: "secrets",
  writtenBy: "user",
  unknownField: "warning",
  description: "Certificates, keys and authorities that gateways use.",
  schema: object(secretFields, { rules: [tlsHasBoth, pairsMatch] }),
});
