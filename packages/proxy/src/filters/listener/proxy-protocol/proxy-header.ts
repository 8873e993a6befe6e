// The header that a proxy puts before a connection to say whose it is (HAProxy, "The PROXY protocol", 2.1 and 2.2):
// version 1 is a line of text, version 2 is binary.
import { isIPv4, isIPv6 } from "node:net";
import type { SocketEnd } from "@tulle/capture";
import { canonicalIp } from "../../../http/canonical-ip.ts";

/** What stands before the connection's own bytes. */
export interface ProxyHeader {
  readonly lengthBytes: number;
  /** Undefined where the proxy speaks for itself, or does not know: the connection's own addresses count. */
  readonly addresses: { readonly source: SocketEnd; readonly destination: SocketEnd } | undefined;
}

/**
 * - `wait`: it may become a header of that version.
 * - `malformed`: it begins as one does, and is none. `endless`: it has not even an end.
 * - `none`: it begins as no header does.
 */
export type ReadProxyHeader =
  | { readonly kind: "header"; readonly version: 1 | 2; readonly header: ProxyHeader }
  | { readonly kind: "malformed" | "endless" | "wait"; readonly version: 1 | 2 }
  | { readonly kind: "none" };

const signature1 = Buffer.from("PROXY ", "latin1");
const signature2 = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** With its CR LF. */
const maxLineBytes = 107;
const fixedBytes = 16;

/** `data`: all that has come, at least one byte. */
export function readProxyHeader(data: Buffer): ReadProxyHeader {
  if (beginsLike(data, signature2)) return data.length < fixedBytes ? { kind: "wait", version: 2 } : readBinary(data);
  if (beginsLike(data, signature1)) return readLine(data);
  return { kind: "none" };
}

function beginsLike(data: Buffer, signature: Buffer): boolean {
  const compared = Math.min(data.length, signature.length);
  return data.compare(signature, 0, compared, 0, compared) === 0;
}

function readLine(data: Buffer): ReadProxyHeader {
  const end = data.subarray(0, maxLineBytes).indexOf("\r\n", 0, "latin1");
  if (end < 0) return { kind: data.length < maxLineBytes ? "wait" : "endless", version: 1 };
  const [, family, ...fields] = data.toString("latin1", 0, end).split(" ");
  const lengthBytes = end + 2;
  if (family === "UNKNOWN") return { kind: "header", version: 1, header: { lengthBytes, addresses: undefined } };
  const isFamily = family === "TCP4" ? isIPv4 : family === "TCP6" ? isIPv6 : undefined;
  const [sourceIp = "", destinationIp = "", sourcePort = "", destinationPort = ""] = fields;
  const isWhole =
    fields.length === 4 &&
    isFamily !== undefined &&
    [sourceIp, destinationIp].every(isFamily) &&
    [sourcePort, destinationPort].every(isPort);
  if (!isWhole) return { kind: "malformed", version: 1 };
  return headerOf(1, lengthBytes, {
    source: { ip: canonicalIp(sourceIp), port: Number(sourcePort) },
    destination: { ip: canonicalIp(destinationIp), port: Number(destinationPort) },
  });
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

const commandLocal = 0x20;
const commandProxy = 0x21;
const familyInet = 1;
const familyInet6 = 2;

function readBinary(data: Buffer): ReadProxyHeader {
  const malformed: ReadProxyHeader = { kind: "malformed", version: 2 };
  const wait: ReadProxyHeader = { kind: "wait", version: 2 };
  const command = data[12]!;
  const restBytes = data.readUInt16BE(14);
  const lengthBytes = fixedBytes + restBytes;
  if (command === commandLocal) {
    if (data.length < lengthBytes) return wait;
    return { kind: "header", version: 2, header: { lengthBytes, addresses: undefined } };
  }
  const family = data[13]! >> 4;
  const transport = data[13]! & 0xf;
  const ipBytes = family === familyInet ? 4 : family === familyInet6 ? 16 : 0;
  const addressBytes = 2 * ipBytes + 4;
  // 1 is a stream, 2 are datagrams: a proxy that says the second over TCP is as little mistaken to Envoy.
  if (command !== commandProxy || ipBytes === 0 || (transport !== 1 && transport !== 2)) return malformed;
  if (restBytes < addressBytes) return malformed;
  if (data.length < lengthBytes) return wait;
  if (!areExtensions(data.subarray(fixedBytes + addressBytes, lengthBytes))) return malformed;
  const ports = fixedBytes + 2 * ipBytes;
  const ip = (at: number): string => ipText(data.subarray(at, at + ipBytes));
  return headerOf(2, lengthBytes, {
    source: { ip: ip(fixedBytes), port: data.readUInt16BE(ports) },
    destination: { ip: ip(fixedBytes + ipBytes), port: data.readUInt16BE(ports + 2) },
  });
}

/** Type, length and value one after the other, to the end. */
function areExtensions(bytes: Buffer): boolean {
  let at = 0;
  while (at < bytes.length) {
    if (at + 3 > bytes.length) return false;
    at += 3 + bytes.readUInt16BE(at + 1);
  }
  return at === bytes.length;
}

function headerOf(
  version: 1 | 2,
  lengthBytes: number,
  addresses: NonNullable<ProxyHeader["addresses"]>,
): ReadProxyHeader {
  const areUnicast = isUnicast(addresses.source.ip) && isUnicast(addresses.destination.ip);
  if (!areUnicast) return { kind: "malformed", version };
  return { kind: "header", version, header: { lengthBytes, addresses } };
}

/** No connection of TCP begins or ends elsewhere. */
function isUnicast(ip: string): boolean {
  if (ip === "::" || ip === "0.0.0.0" || ip === "255.255.255.255") return false;
  if (isIPv6(ip)) return !ip.startsWith("ff");
  const first = Number(ip.slice(0, ip.indexOf(".")));
  return first < 224 || first > 239;
}

function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join(".");
  return canonicalIp(Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(2 * group).toString(16)).join(":"));
}
