// Subject alternative names (RFC 5280 §4.2.1.6): where a workload's SPIFFE id stands, and a server's host names.
import { isIPv4, isIPv6 } from "node:net";
import { implicit, sequence } from "../der/der-writer.ts";
import { asciiText, DerError, DerReader, type DerElement } from "../der/der-reader.ts";

export interface SubjectAlternativeName {
  readonly type: "uri" | "dns" | "ip" | "other";
  /** For "other" the content in hexadecimal, behind the number of its kind. */
  readonly value: string;
}

const tags = { uri: 6, dns: 2, ip: 7 } as const;

/** The extension's value. @throws {TypeError} for a kind of name that is only ever read. */
export function encodeNames(names: readonly SubjectAlternativeName[]): Buffer {
  return sequence(
    ...names.map(({ type, value }) => {
      if (type === "other") throw new TypeError("only URI, DNS and IP names are made here");
      return implicit(tags[type], type === "ip" ? addressOctets(value) : Buffer.from(value, "latin1"));
    }),
  );
}

/** @throws {DerError} */
export function decodeNames(value: Uint8Array): readonly SubjectAlternativeName[] {
  const outer = new DerReader(value);
  const reader = outer.enter(0x30);
  outer.end();
  const names: SubjectAlternativeName[] = [];
  while (!reader.done) names.push(decodeName(reader.any()));
  if (names.length === 0) throw new DerError("the list of subject alternative names is empty");
  return names;
}

function decodeName({ tag, content }: DerElement): SubjectAlternativeName {
  switch (tag) {
    case 0x86:
      return { type: "uri", value: asciiText(content) };
    case 0x82:
      return { type: "dns", value: asciiText(content) };
    case 0x87:
      return { type: "ip", value: addressText(content) };
    default:
      return { type: "other", value: `${tag & 0x1f}:${content.toString("hex")}` };
  }
}

function addressOctets(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  if (!isIPv6(address) || address.includes("%")) throw new TypeError(`"${address}" is no IP address`);
  // An IPv4 tail becomes two groups, and "::" as many zeros as are missing.
  const text = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a: string, b: string, c: string, d: string) =>
    [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((group) => group.toString(16)).join(":"),
  );
  const [head = "", tail] = text.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16)));
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const all = [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

function addressText(octets: Buffer): string {
  if (octets.length === 4) return octets.join(".");
  if (octets.length !== 16) throw new DerError("an IP address has neither 4 nor 16 octets");
  return Array.from({ length: 8 }, (_, index) => octets.readUInt16BE(index * 2).toString(16)).join(":");
}
