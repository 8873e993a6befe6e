/**
 * PEM of Secrets as far as configuration has to know it: whether it can be read, whether a key belongs to its
 * certificate, and until when certificates hold. The messages never repeat what they are about.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { KeyObject } from "node:crypto";

const certificateBlock = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const anyBlock = /-----BEGIN ([A-Z0-9 ]+)-----/;
const revocationBlock = /-----BEGIN X509 CRL-----[A-Za-z0-9+/=\s]+-----END X509 CRL-----/;

/** More than any real chain or bundle of authorities has. */
const maxCertificates = 256;

export function isPem(value: Uint8Array): boolean {
  return anyBlock.test(Buffer.from(value).toString("latin1"));
}

/** All certificates of a PEM text in their order; undefined when there is none, or one that cannot be read. */
export function readCertificates(pem: Uint8Array): readonly X509Certificate[] | undefined {
  const blocks = Buffer.from(pem).toString("latin1").match(certificateBlock) ?? [];
  if (blocks.length === 0 || blocks.length > maxCertificates) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** What is wrong with a list of certificates; undefined when it can be read. */
export function checkCertificates(pem: Uint8Array): string | undefined {
  return readCertificates(pem) === undefined ? "there is no certificate in PEM that can be read" : undefined;
}

export function checkRevocationList(pem: Uint8Array): string | undefined {
  const isList = revocationBlock.test(Buffer.from(pem).toString("latin1"));
  return isList ? undefined : "there is no certificate revocation list in PEM";
}

/** What is wrong with a certificate chain and the private key of its first certificate. */
export function checkKeyPair(
  chain: Uint8Array,
  key: Uint8Array,
): { readonly part: "certificate" | "key"; readonly message: string } | undefined {
  const [leaf] = readCertificates(chain) ?? [];
  if (leaf === undefined) return { part: "certificate", message: checkCertificates(chain) ?? "it is empty" };
  const privateKey = readPrivateKey(key);
  if (privateKey === undefined) {
    return { part: "key", message: "there is no private key in PEM that can be read without a passphrase" };
  }
  if (!leaf.checkPrivateKey(privateKey)) {
    return { part: "key", message: "the private key does not belong to the first certificate of the chain" };
  }
  return undefined;
}

function readPrivateKey(pem: Uint8Array): KeyObject | undefined {
  try {
    return createPrivateKey(Buffer.from(pem));
  } catch {
    return undefined;
  }
}
