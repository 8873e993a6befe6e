// Certificate revocation lists (RFC 5280 §5), for who has to look for a single certificate: TLS libraries look for the
// whole chain or not at all.
import { type X509Certificate } from "node:crypto";
import {
  bitStringOctets,
  DerError,
  DerReader,
  integerOctets,
  smallIntegerValue,
  timeValue,
} from "../der/der-reader.ts";
import { parsePem } from "../pem.ts";
import { decodeExtensions } from "./extensions.ts";
import { parseSignatureAlgorithm, verifySignature } from "./signature.ts";

export interface RevocationList {
  readonly thisUpdateMs: number;
  /** From then on the list says nothing any more. */
  readonly nextUpdateMs: number | undefined;
  /** Lower-case hexadecimal without a leading zero octet, as certificates' serials are printed. */
  readonly serials: ReadonlySet<string>;
  /** By name and signature. */
  readonly isIssuedBy: (issuer: X509Certificate) => boolean;
}

export type ParsedRevocationLists =
  | { readonly ok: true; readonly lists: readonly RevocationList[] }
  | { readonly ok: false; readonly message: string };

/** A list of that many entries is a few megabytes. */
const maxListBytes = 16 * 1024 * 1024;
/** authorityKeyIdentifier and cRLNumber change nothing in what the list says; delta and partial lists do. */
const harmlessExtensions: ReadonlySet<string> = new Set(["2.5.29.35", "2.5.29.20"]);

/** All lists of a PEM text, at least one. */
export function parseRevocationLists(pem: string): ParsedRevocationLists {
  const blocks = parsePem(pem);
  if (blocks === undefined) return { ok: false, message: "the text is not well-formed PEM" };
  const lists: RevocationList[] = [];
  for (const { label, der } of blocks) {
    if (label !== "X509 CRL") continue;
    try {
      lists.push(readRevocationList(der));
    } catch (error) {
      if (!(error instanceof DerError)) throw error;
      return { ok: false, message: `revocation list ${lists.length + 1}: ${error.message}` };
    }
  }
  return lists.length === 0 ? { ok: false, message: "there is no revocation list in it" } : { ok: true, lists };
}

/** @throws {DerError} */
function readRevocationList(der: Buffer): RevocationList {
  if (der.length > maxListBytes) throw new DerError(`it is larger than ${maxListBytes} bytes`);
  const outer = new DerReader(der);
  const parts = outer.enter(0x30);
  outer.end();
  const signed = parts.read(0x30);
  const algorithm = parts.read(0x30);
  const signature = bitStringOctets(parts.read(0x03));
  parts.end();
  const list = new DerReader(signed.content);
  const version = list.optional(0x02);
  if (version !== undefined && smallIntegerValue(version) !== 1) throw new DerError("it is not of version 2");
  if (!list.read(0x30).whole.equals(algorithm.whole)) throw new DerError("it names two signature algorithms");
  const issuerDer = list.read(0x30).whole;
  const thisUpdateMs = timeValue(list.any());
  const nextUpdate = list.optional(0x17) ?? list.optional(0x18);
  const serials = readSerials(list.optional(0x30)?.content);
  checkExtensions(list.optional(0xa0)?.content);
  list.end();
  const algorithmName = parseSignatureAlgorithm(algorithm);
  return {
    thisUpdateMs,
    nextUpdateMs: nextUpdate && timeValue(nextUpdate),
    serials,
    isIssuedBy: (issuer) =>
      subjectOf(issuer)?.equals(issuerDer) === true &&
      verifySignature(algorithmName, signed.whole, signature, issuer.publicKey),
  };
}

function readSerials(content: Buffer | undefined): ReadonlySet<string> {
  const serials = new Set<string>();
  const entries = new DerReader(content ?? new Uint8Array());
  while (!entries.done) {
    const entry = entries.enter(0x30);
    const octets = integerOctets(entry.read(0x02));
    serials.add((octets[0] === 0 && octets.length > 1 ? octets.subarray(1) : octets).toString("hex"));
    timeValue(entry.any());
    // Why, or since when; an entry that is of another issuer's certificate (certificateIssuer) is critical.
    const extensions = entry.optional(0x30);
    if (extensions !== undefined) refuseCritical(extensions.content);
    entry.end();
  }
  return serials;
}

function checkExtensions(content: Buffer | undefined): void {
  if (content === undefined) return;
  const outer = new DerReader(content);
  refuseCritical(outer.read(0x30).content);
  outer.end();
}

function refuseCritical(content: Buffer): void {
  for (const extension of decodeExtensions(new DerReader(content))) {
    if (extension.critical && !harmlessExtensions.has(extension.oid)) {
      throw new DerError(`the extension ${extension.oid} is not understood`);
    }
  }
}

/** The name's bytes; Node shows it only as text. */
function subjectOf(issuer: X509Certificate): Buffer | undefined {
  const certificate = new DerReader(issuer.raw).enter(0x30).enter(0x30);
  certificate.optional(0xa0);
  for (const tag of [0x02, 0x30, 0x30, 0x30]) certificate.read(tag);
  return certificate.read(0x30).whole;
}
