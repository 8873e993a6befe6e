// The authority's side of a certificate request: strictly read, proof of possession verified, nothing in it believed.
import { createPublicKey, type KeyObject } from "node:crypto";
import { bitStringOctets, DerError, DerReader, objectIdentifierText, smallIntegerValue } from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";
import { keyProblem } from "../keys/key-algorithm.ts";
import { parsePem } from "../pem.ts";
import { decodeBasicConstraints, decodeExtensions, type Extension } from "../x509/extensions.ts";
import { parseSignatureAlgorithm, verifySignature } from "../x509/signature.ts";
import { decodeNames, type SubjectAlternativeName } from "../x509/subject-alternative-names.ts";

export interface CertificateRequest {
  /** The requester has proved that the private key is its own. */
  readonly publicKey: KeyObject;
  /** What the requester wishes to be called; compared with what it has proved to be, never taken over. */
  readonly requestedNames: readonly SubjectAlternativeName[];
  readonly asksToBeCa: boolean;
}

export type ParsedCsr =
  | { readonly ok: true; readonly request: CertificateRequest }
  | {
      readonly ok: false;
      readonly code: "malformed-csr" | "bad-csr-signature" | "unsuitable-key";
      readonly message: string;
    };

/** An RSA-8192 request with a few names has 4 KB. */
const maxPemCharacters = 16 * 1024;

export function parseCsr(pem: string): ParsedCsr {
  if (pem.length > maxPemCharacters) return malformed(`it is longer than ${maxPemCharacters} characters`);
  const blocks = parsePem(pem);
  if (blocks?.length !== 1) return malformed("it is not exactly one block of PEM");
  const { label, der } = blocks[0]!;
  // The second spelling is that of older programs (RFC 7468 §7).
  if (label !== "CERTIFICATE REQUEST" && label !== "NEW CERTIFICATE REQUEST") return malformed(`it is a ${label}`);
  try {
    return readCsr(der);
  } catch (error) {
    if (error instanceof DerError) return malformed(error.message);
    throw error;
  }
}

function readCsr(der: Buffer): ParsedCsr {
  const outer = new DerReader(der);
  const parts = outer.enter(0x30);
  outer.end();
  const info = parts.read(0x30);
  const algorithm = parseSignatureAlgorithm(parts.read(0x30));
  const signature = bitStringOctets(parts.read(0x03));
  parts.end();

  const fields = new DerReader(info.content);
  if (smallIntegerValue(fields.read(0x02)) !== 0) throw new DerError("its version is not 1");
  fields.read(0x30);
  const publicKey = readKey(fields.read(0x30).whole);
  const extensions = requestedExtensions(fields.enter(0xa0));
  fields.end();

  const problem = keyProblem(publicKey);
  if (problem !== undefined) return { ok: false, code: "unsuitable-key", message: problem };
  if (!verifySignature(algorithm, info.whole, signature, publicKey)) {
    return { ok: false, code: "bad-csr-signature", message: "the request is not signed with the key that it names" };
  }
  const names = extensions.find((extension) => extension.oid === oid.subjectAlternativeName);
  const constraints = extensions.find((extension) => extension.oid === oid.basicConstraints);
  return {
    ok: true,
    request: {
      publicKey,
      requestedNames: names === undefined ? [] : decodeNames(names.value),
      asksToBeCa: constraints !== undefined && decodeBasicConstraints(constraints.value).ca,
    },
  };
}

function readKey(info: Buffer): KeyObject {
  try {
    return createPublicKey({ key: info, format: "der", type: "spki" });
  } catch (cause) {
    throw new DerError("its public key is not readable", { cause });
  }
}

/** The extensions of all attributes; a second list of them would be a second answer to who asks (RFC 2985 §5.4.2). */
function requestedExtensions(attributes: DerReader): readonly Extension[] {
  let found: readonly Extension[] | undefined;
  while (!attributes.done) {
    const attribute = attributes.enter(0x30);
    const type = objectIdentifierText(attribute.read(0x06));
    const values = attribute.enter(0x31);
    attribute.end();
    if (type !== oid.extensionRequest) continue;
    if (found !== undefined) throw new DerError("it asks for extensions twice");
    found = decodeExtensions(values.enter(0x30));
    values.end();
  }
  return found ?? [];
}

function malformed(message: string): ParsedCsr {
  return { ok: false, code: "malformed-csr", message: `the request is not readable: ${message}` };
}
