// The agent's side of a certificate request (PKCS #10, RFC 2986): signed with the new key, as proof that the agent has
// it.
import type { KeyObject } from "node:crypto";
import { bitString, explicit, objectIdentifier, sequence, set, smallInteger } from "../der/der-writer.ts";
import { oid } from "../der/object-identifiers.ts";
import { publicKeyInfo } from "../keys/private-key.ts";
import { pemText } from "../pem.ts";
import { type SpiffeId, spiffeIdText } from "../spiffe-id.ts";
import { encodeExtension, subjectAlternativeName } from "../x509/extensions.ts";
import { signatureAlgorithm, signBytes } from "../x509/signature.ts";

/**
 * A request in PEM with an empty subject and the id as its one URI, as Istio's agent makes it; without an id for who is
 * told by the authority who it is.
 */
export function createCsr(request: { readonly key: KeyObject; readonly spiffeId?: SpiffeId }): string {
  const attributes = explicit(0, request.spiffeId === undefined ? Buffer.alloc(0) : idRequest(request.spiffeId));
  const info = sequence(smallInteger(0), sequence(), publicKeyInfo(request.key), attributes);
  const der = sequence(info, signatureAlgorithm(request.key), bitString(signBytes(info, request.key)));
  return pemText("CERTIFICATE REQUEST", der);
}

function idRequest(spiffeId: SpiffeId): Buffer {
  const names = subjectAlternativeName([{ type: "uri", value: spiffeIdText(spiffeId) }], true);
  return sequence(objectIdentifier(oid.extensionRequest), set(sequence(encodeExtension(names))));
}
