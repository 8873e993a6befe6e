/**
 * What gateways read out of Secrets, by the keys and names that Istio reads them by, and how Secrets are shown to those
 * who may not know them.
 */
import { authorityNames, keyPairNames, secretValue } from "./secret.ts";
import type { MeshResource, Secret } from "./resource.ts";
import { checkCertificates, checkKeyPair, checkRevocationList, readCertificates } from "../rules/secret-material.ts";

/** Appended to a credentialName: the Secret with the authorities, where it is one of its own (Istio: SdsCaSuffix). */
export const authoritiesSuffix = "-cacert";

/** The development certificate that `tulle up` provides; no manifest holds it. */
export const localhostSecret = { namespace: "tulle-system", name: "localhost-dev" } as const;

/** A server's certificate chain with its key, all PEM. */
export interface ServerCredential {
  readonly certificateChain: Uint8Array;
  readonly privateKey: Uint8Array;
  readonly ocspStaple?: Uint8Array;
}

/** Authorities for the certificates of peers, PEM. */
export interface AuthorityCredential {
  readonly trustedCa: Uint8Array;
  readonly revocationList?: Uint8Array;
}

export type ReadCredential<T> =
  | { readonly ok: true; readonly credential: T; readonly expiresAtMs: number }
  | { readonly ok: false; readonly message: string };

/** The certificate of a Secret: `cert` and `key`, else `tls.crt` and `tls.key` (Istio: ExtractCertInfo). */
export function serverCredential(secret: Secret): ReadCredential<ServerCredential> {
  for (const names of keyPairNames) {
    const certificateChain = secretValue(secret, names.certificate);
    const privateKey = secretValue(secret, names.privateKey);
    if (!isThere(certificateChain) || !isThere(privateKey)) continue;
    const problem = checkKeyPair(certificateChain, privateKey);
    if (problem !== undefined) {
      const name = problem.part === "key" ? names.privateKey : names.certificate;
      return { ok: false, message: `"${name}": ${problem.message}` };
    }
    const ocspStaple = secretValue(secret, "tls.ocsp-staple");
    const [leaf] = readCertificates(certificateChain) ?? [];
    return {
      ok: true,
      credential: { certificateChain, privateKey, ...(isThere(ocspStaple) ? { ocspStaple } : {}) },
      expiresAtMs: leaf!.validToDate.getTime(),
    };
  }
  return { ok: false, message: 'it holds neither "tls.crt" and "tls.key" nor "cert" and "key"' };
}

/** The authorities of a Secret: `cacert` and `crl`, else `ca.crt` and `ca.crl` (Istio: ExtractRoot). */
export function authorityCredential(secret: Secret): ReadCredential<AuthorityCredential> {
  for (const names of authorityNames) {
    const trustedCa = secretValue(secret, names.certificates);
    if (!isThere(trustedCa)) continue;
    const message = checkCertificates(trustedCa);
    if (message !== undefined) return { ok: false, message: `"${names.certificates}": ${message}` };
    const revocationList = secretValue(secret, names.revocationList);
    const wrongList = isThere(revocationList) ? checkRevocationList(revocationList) : undefined;
    if (wrongList !== undefined) return { ok: false, message: `"${names.revocationList}": ${wrongList}` };
    const ends = (readCertificates(trustedCa) ?? []).map((each) => each.validToDate.getTime());
    return {
      ok: true,
      credential: { trustedCa, ...(isThere(revocationList) ? { revocationList } : {}) },
      // As long as one of them holds, some client can be let in.
      expiresAtMs: Math.max(...ends),
    };
  }
  return { ok: false, message: 'it holds neither "ca.crt" nor "cacert"' };
}

function isThere(value: Uint8Array | undefined): value is Uint8Array {
  return value !== undefined && value.length > 0;
}

/** No base64 and no PEM, so that a Secret that was read this way cannot be applied by mistake. */
const concealedValue = "(hidden)";

/** The annotation in which kubectl keeps the whole object. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** A resource as those see it who may not know Secrets: the keys of their data, and no value. */
export function concealSecrets(resource: MeshResource): MeshResource {
  if (resource.kind !== "Secret") return resource;
  const conceal = (values: Readonly<Record<string, string>> | undefined): Record<string, string> =>
    Object.fromEntries(Object.keys(values ?? {}).map((key) => [key, concealedValue]));
  const { data, stringData, metadata, ...rest } = resource;
  const { annotations = {}, ...otherMetadata } = metadata;
  const { [lastApplied]: _copy, ...kept } = annotations;
  return {
    ...rest,
    metadata: { ...otherMetadata, ...(Object.keys(kept).length === 0 ? {} : { annotations: kept }) },
    data: { ...conceal(data), ...conceal(stringData) },
  };
}
