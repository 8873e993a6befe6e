// The certificate extensions that decide who may do what (RFC 5280 §4.2), as they are written and as they are read.
import { createHash, type KeyObject } from "node:crypto";
import {
  bitString,
  booleanTrue,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  smallInteger,
} from "../der/der-writer.ts";
import {
  bitStringOctets,
  booleanValue,
  DerError,
  DerReader,
  objectIdentifierText,
  smallIntegerValue,
} from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";
import { publicKeyInfo } from "../keys/private-key.ts";
import { encodeNames, type SubjectAlternativeName } from "./subject-alternative-names.ts";

export interface Extension {
  readonly oid: string;
  readonly critical: boolean;
  readonly value: Uint8Array;
}

/** The bits of RFC 5280 §4.2.1.3 that the mesh uses, by their number. */
const keyUsageBits = { digitalSignature: 0, keyEncipherment: 2, keyCertSign: 5, crlSign: 6 } as const;
export type KeyUsage = keyof typeof keyUsageBits;

export function encodeExtension(extension: Extension): Buffer {
  return sequence(
    objectIdentifier(extension.oid),
    ...(extension.critical ? [booleanTrue()] : []),
    octetString(extension.value),
  );
}

/** A list of extensions; each may occur once (RFC 5280 §4.2). @throws {DerError} */
export function decodeExtensions(reader: DerReader): readonly Extension[] {
  const found = new Map<string, Extension>();
  while (!reader.done) {
    const one = reader.enter(0x30);
    const identifier = objectIdentifierText(one.read(0x06));
    const flag = one.optional(0x01);
    const critical = flag !== undefined && booleanValue(flag);
    const value = one.read(0x04).content;
    one.end();
    if (found.has(identifier)) throw new DerError(`the extension ${identifier} stands twice`);
    found.set(identifier, { oid: identifier, critical, value });
  }
  return [...found.values()];
}

export function basicConstraints(constraints: { readonly ca: boolean; readonly pathLength?: number }): Extension {
  const { ca, pathLength } = constraints;
  const value = sequence(
    ...(ca ? [booleanTrue()] : []),
    ...(pathLength === undefined ? [] : [smallInteger(pathLength)]),
  );
  return { oid: oid.basicConstraints, critical: true, value };
}

/** @throws {DerError} */
export function decodeBasicConstraints(value: Uint8Array): { readonly ca: boolean; readonly pathLength?: number } {
  const outer = new DerReader(value);
  const reader = outer.enter(0x30);
  outer.end();
  const flag = reader.optional(0x01);
  const ca = flag !== undefined && booleanValue(flag);
  const length = reader.optional(0x02);
  reader.end();
  return length === undefined ? { ca } : { ca, pathLength: smallIntegerValue(length) };
}

export function keyUsage(usages: readonly KeyUsage[]): Extension {
  const bits = usages.map((usage) => keyUsageBits[usage]);
  const octet = bits.reduce<number>((sum, bit) => sum | (0x80 >> bit), 0);
  // DER drops trailing zero bits (X.690 §11.2.2).
  return { oid: oid.keyUsage, critical: true, value: bitString(Uint8Array.of(octet), 7 - Math.max(...bits)) };
}

/** Of the usages that the mesh knows, those that are set. @throws {DerError} */
export function decodeKeyUsage(value: Uint8Array): ReadonlySet<KeyUsage> {
  const reader = new DerReader(value);
  const { content } = reader.read(0x03);
  reader.end();
  const [unused, first] = content;
  if (unused === undefined || unused > 7 || first === undefined) throw new DerError("no key usage is given");
  // OpenSSL passes over bits that are marked as unused; here they could be taken for usages.
  if ((content.at(-1)! & ((1 << unused) - 1)) !== 0) throw new DerError("unused bits of the key usage are set");
  const usages = (Object.keys(keyUsageBits) as KeyUsage[]).filter(
    (usage) => (first & (0x80 >> keyUsageBits[usage])) !== 0,
  );
  return new Set(usages);
}

export function extendedKeyUsage(purposes: readonly string[]): Extension {
  return { oid: oid.extendedKeyUsage, critical: false, value: sequence(...purposes.map(objectIdentifier)) };
}

/** @throws {DerError} */
export function decodeExtendedKeyUsage(value: Uint8Array): ReadonlySet<string> {
  const outer = new DerReader(value);
  const reader = outer.enter(0x30);
  outer.end();
  const purposes = new Set<string>();
  while (!reader.done) purposes.add(objectIdentifierText(reader.read(0x06)));
  return purposes;
}

/** Critical where the subject is empty, because then it is the only name (RFC 5280 §4.2.1.6). */
export function subjectAlternativeName(names: readonly SubjectAlternativeName[], subjectIsEmpty: boolean): Extension {
  return { oid: oid.subjectAlternativeName, critical: subjectIsEmpty, value: encodeNames(names) };
}

/** 160 bits of the SHA-256 of the public key (RFC 7093 §2, method 1): no SHA-1, which some machines switch off. */
export function keyIdentifier(key: KeyObject): Buffer {
  const reader = new DerReader(publicKeyInfo(key)).enter(0x30);
  reader.read(0x30);
  return createHash("sha256")
    .update(bitStringOctets(reader.read(0x03)))
    .digest()
    .subarray(0, 20);
}

export function subjectKeyIdentifier(identifier: Uint8Array): Extension {
  return { oid: oid.subjectKeyIdentifier, critical: false, value: octetString(identifier) };
}

/** @throws {DerError} */
export function decodeSubjectKeyIdentifier(value: Uint8Array): Buffer {
  const reader = new DerReader(value);
  const { content } = reader.read(0x04);
  reader.end();
  return content;
}

export function authorityKeyIdentifier(identifier: Uint8Array): Extension {
  return { oid: oid.authorityKeyIdentifier, critical: false, value: sequence(implicit(0, identifier)) };
}

/** Undefined when the issuer is named in another way, which is allowed. @throws {DerError} */
export function decodeAuthorityKeyIdentifier(value: Uint8Array): Buffer | undefined {
  const outer = new DerReader(value);
  const reader = outer.enter(0x30);
  outer.end();
  return reader.optional(0x80)?.content;
}
