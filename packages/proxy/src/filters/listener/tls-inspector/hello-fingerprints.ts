// Which program a client is, by what stands in its ClientHello: JA3 and JA4 as Envoy 1.40 makes them, whatever their
// own texts say otherwise. Hellos are strangers' bytes: a list that ends too early counts as far as it goes.
import { hash } from "node:crypto";
import { type ClientHello, Cursor, extensionProtocols, extensionServerName } from "./client-hello.ts";

const extensionGroups = 10;
const extensionPointFormats = 11;
const extensionSignatureAlgorithms = 13;
const extensionVersions = 43;

/** Of 64 hexadecimal digits of a SHA-256. */
const hashLength = 12;
const emptyHash = "0".repeat(hashLength);

/** Hexadecimal MD5 of `version,suites,extensions,groups,point formats`. */
export function ja3Fingerprint({ legacyVersion, cipherSuites, extensions }: ClientHello): string {
  const lists = [
    numbers(cipherSuites, 0, 2).filter(isNotGrease),
    [...extensions.keys()].filter(isNotGrease),
    // Envoy leaves GREASE in.
    listOf(extensions.get(extensionGroups), 2),
    listOf(extensions.get(extensionPointFormats), 1),
  ];
  return hash("md5", `${legacyVersion},${lists.map((list) => list.join("-")).join(",")}`);
}

/** Such as `t13d1516h2_8daaf6152771_e5627efa2ab1`. */
export function ja4Fingerprint(hello: ClientHello): string {
  const { cipherSuites, extensions } = hello;
  const suites = numbers(cipherSuites, 0, 2).filter(isNotGrease);
  const types = [...extensions.keys()].filter(isNotGrease);
  const named = extensions.has(extensionServerName) ? "d" : "i";
  const counts = twoDigits(suites.length) + twoDigits(types.length);
  const hashes = `${suiteHash(suites)}_${extensionHash(types, extensions.get(extensionSignatureAlgorithms))}`;
  return `t${versionOf(hello)}${named}${counts}${protocolLetters(extensions.get(extensionProtocols))}_${hashes}`;
}

function suiteHash(suites: readonly number[]): string {
  return suites.length === 0 ? emptyHash : hashOf(hexadecimal(sorted(suites)));
}

/** The extensions in order, signature algorithms as they stand. */
function extensionHash(types: readonly number[], signatureAlgorithms: Buffer | undefined): string {
  const hashed = types.filter((type) => type !== extensionServerName && type !== extensionProtocols);
  if (hashed.length === 0) return emptyHash;
  const algorithms = listOf(signatureAlgorithms, 2);
  const text = hexadecimal(sorted(hashed));
  return hashOf(algorithms.length === 0 ? text : `${text}_${hexadecimal(algorithms)}`);
}

const versionTexts: Readonly<Record<number, string>> = { 0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10" };
const noVersion = "00";

/** The highest that is offered, or the old field where none is. */
function versionOf({ legacyVersion, extensions }: ClientHello): string {
  const extension = extensions.get(extensionVersions);
  let version = legacyVersion;
  if (extension !== undefined) {
    const list = new Cursor(extension).vector(1);
    if (list === undefined) return noVersion;
    const highest = Math.max(0, ...numbers(list, 0, 2).filter(isNotGrease));
    if (highest > 0) version = highest;
  }
  return versionTexts[version] ?? noVersion;
}

/** First and last of the first protocol, or one hexadecimal digit of each where they are neither letters nor digits. */
function protocolLetters(extension: Buffer | undefined): string {
  if (extension === undefined) return "00";
  const cursor = new Cursor(extension);
  // The list's length says nothing here.
  cursor.number(2);
  const name = cursor.vector(1);
  if (name === undefined || name.length === 0) return "00";
  const [first, last] = [name[0]!, name.at(-1)!];
  const letters = String.fromCharCode(first, last);
  if (/^[0-9A-Za-z]{2}$/.test(letters)) return letters;
  return (first >> 4).toString(16) + (last & 0xf).toString(16);
}

/** Of a vector in an extension, whose own length says nothing here. */
function listOf(extension: Buffer | undefined, bytesEach: 1 | 2): number[] {
  return extension === undefined ? [] : numbers(extension, bytesEach, bytesEach);
}

function numbers(data: Buffer, from: number, bytesEach: 1 | 2): number[] {
  const found: number[] = [];
  for (let at = from; at + bytesEach <= data.length; at += bytesEach) {
    found.push(bytesEach === 2 ? data.readUInt16BE(at) : data[at]!);
  }
  return found;
}

/** RFC 8701 §2: `0x0a0a`, `0x1a1a` and so on. */
const isNotGrease = (value: number): boolean => (value & 0x0f0f) !== 0x0a0a || value >> 8 !== (value & 0xff);
/** A hello has room for 8,000 numbers: the runtime's own loop sorts them. */
const sorted = (values: readonly number[]): Uint16Array => Uint16Array.from(values).sort();
const digits = Buffer.from("0123456789abcdef");
/** Four digits each, with commas between. */
function hexadecimal(values: ArrayLike<number>): string {
  const text = Buffer.alloc(Math.max(0, values.length * 5 - 1), ",");
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]!;
    for (let digit = 0; digit < 4; digit += 1) text[index * 5 + digit] = digits[(value >> (12 - digit * 4)) & 0xf]!;
  }
  return text.toString("latin1");
}
const twoDigits = (count: number): string => String(Math.min(count, 99)).padStart(2, "0");
const hashOf = (text: string): string => hash("sha256", text).slice(0, hashLength);
