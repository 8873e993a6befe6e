// What entries of requests and of connections have in common for an access log service
// (envoy.data.accesslog.v3.AccessLogCommon), written field by field.
import { randomUUID } from "node:crypto";
import type { ProtobufWriter } from "@tulle/telemetry";
import { downstreamBytesOf, upstreamBytesOf } from "../format/byte-operators.ts";
import { streamPoints } from "../format/time-operators.ts";
import { accessLogTypes, isIntermediate } from "../http/access-log-type.ts";
import { grpcMessagesKey, grpcMessagesType } from "../http/grpc-messages.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import { responseFlags } from "../http/response-flags.ts";
import type { ShownCertificateInfo } from "../tls/tls-info.ts";
import { writeFilterMetadata } from "./write-metadata.ts";
import { utf8Text } from "./utf8-text.ts";

/** By the number of the field that says it. */
const timesSinceStart: readonly (readonly [field: number, point: (info: StreamInfo) => number])[] = [
  [6, streamPoints.DS_RX_END],
  [7, streamPoints.US_TX_BEG],
  [8, streamPoints.US_TX_END],
  [9, streamPoints.US_RX_BEG],
  [10, streamPoints.US_RX_END],
  [11, streamPoints.DS_TX_BEG],
  [12, streamPoints.DS_TX_END],
];

/** `filterStateObjects`: names of those that are wanted. */
export function writeCommonProperties(
  writer: ProtobufWriter,
  field: number,
  info: StreamInfo,
  filterStateObjects: readonly string[] = [],
): void {
  const start = writer.begin(field);
  writeAddress(writer, 2, info.downstreamRemoteAddress);
  writeAddress(writer, 3, info.downstreamLocalAddress);
  writeTls(writer, info);
  writeDuration(writer, 5, info.startTimeMs);
  for (const [number, point] of timesSinceStart) {
    const atMs = point(info);
    if (atMs >= 0) writeDuration(writer, number, Math.max(0, atMs - info.startMonotonicMs));
  }
  writeUpstream(writer, info);
  writeFlags(writer, info.responseFlags);
  if (info.dynamicMetadata !== undefined) writeFilterMetadata(writer, 17, info.dynamicMetadata);
  writeText(writer, 18, spacedReason(info.upstreamTransportFailureReason));
  writeText(writer, 19, info.route?.name);
  writeAddress(writer, 20, info.downstreamDirectRemoteAddress);
  if (filterStateObjects.includes(grpcMessagesKey)) writeGrpcMessages(writer, info);
  writeDuration(writer, 23, info.durationMs);
  writeUint(writer, 24, info.attemptCount);
  writeText(writer, 25, info.connectionTerminationDetails);
  writeText(writer, 26, streamIdOf(info));
  if (isIntermediate(info.accessLogType)) writer.bool(27, true);
  writeText(writer, 28, info.downstreamTransportFailureReason);
  const downstream = downstreamBytesOf(info);
  const upstream = upstreamBytesOf(info);
  writeUint(writer, 29, downstream.wireBytesSent);
  writeUint(writer, 30, downstream.wireBytesReceived);
  writeUint(writer, 31, upstream.wireBytesSent);
  writeUint(writer, 32, upstream.wireBytesReceived);
  writeUint(writer, 33, accessLogTypes[info.accessLogType]);
  writer.end(start);
}

/** An entry of the map of objects, in an Any: the only one that filters here leave. */
function writeGrpcMessages(writer: ProtobufWriter, { grpcMessages }: StreamInfo): void {
  if (grpcMessages === undefined) return;
  const entry = writer.begin(21);
  writer.text(1, grpcMessagesKey);
  const any = writer.begin(2);
  writer.text(1, grpcMessagesType);
  const message = writer.begin(2);
  writeUint(writer, 1, grpcMessages.request.count);
  writeUint(writer, 2, grpcMessages.response.count);
  writer.end(message);
  writer.end(any);
  writer.end(entry);
}

/** A request's id; a connection that is passed on gets one that is made up. */
function streamIdOf({ isConnection, isWithoutId, request }: StreamInfo): string | undefined {
  if (!isConnection) return request?.headers.get("x-request-id");
  return isWithoutId ? undefined : randomUUID();
}

/** What OpenSSL says has underscores of its own. */
function spacedReason(reason: string | undefined): string | undefined {
  return reason?.startsWith("TLS_error") === true ? reason : reason?.replaceAll("_", " ");
}

function writeUpstream(writer: ProtobufWriter, { upstreamHost, upstreamLocalAddress, cluster }: StreamInfo): void {
  writeAddress(writer, 13, upstreamHost?.addressText);
  writeAddress(writer, 14, upstreamLocalAddress);
  // Without a host Envoy names no cluster.
  if (upstreamHost !== undefined) writeText(writer, 15, cluster?.observabilityName);
}

/** The bits stand in the order of the message's fields, up to the last two. */
const fieldsOfFlags: readonly (readonly [bit: number, field: number])[] = [
  ...Array.from({ length: 27 }, (_, index) => [1 << index, index + 1] as const),
  [responseFlags.DR.bit, 28],
];
const unauthorizedField = 13;

function writeFlags(writer: ProtobufWriter, bits: number): void {
  if (bits === 0) return;
  const start = writer.begin(16);
  for (const [bit, field] of fieldsOfFlags) {
    if ((bits & bit) === 0) continue;
    if (field !== unauthorizedField) {
      writer.bool(field, true);
      continue;
    }
    const details = writer.begin(field);
    // EXTERNAL_SERVICE
    writer.uint(1, 1);
    writer.end(details);
  }
  writer.end(start);
}

const tlsVersions: Readonly<Record<string, number>> = { TLSv1: 1, "TLSv1.1": 2, "TLSv1.2": 3, "TLSv1.3": 4 };

/** IANA's numbers ("TLS Cipher Suites") of what OpenSSL calls those that this runtime speaks. */
const cipherSuites: Readonly<Record<string, number>> = {
  TLS_AES_128_GCM_SHA256: 0x1301,
  TLS_AES_256_GCM_SHA384: 0x1302,
  TLS_CHACHA20_POLY1305_SHA256: 0x1303,
  "ECDHE-ECDSA-AES128-GCM-SHA256": 0xc02b,
  "ECDHE-ECDSA-AES256-GCM-SHA384": 0xc02c,
  "ECDHE-ECDSA-CHACHA20-POLY1305": 0xcca9,
  "ECDHE-ECDSA-AES128-SHA": 0xc009,
  "ECDHE-ECDSA-AES256-SHA": 0xc00a,
  "ECDHE-RSA-AES128-GCM-SHA256": 0xc02f,
  "ECDHE-RSA-AES256-GCM-SHA384": 0xc030,
  "ECDHE-RSA-CHACHA20-POLY1305": 0xcca8,
  "ECDHE-RSA-AES128-SHA": 0xc013,
  "ECDHE-RSA-AES256-SHA": 0xc014,
  "AES128-GCM-SHA256": 0x009c,
  "AES256-GCM-SHA384": 0x009d,
  "AES128-SHA": 0x002f,
  "AES256-SHA": 0x0035,
};

/** Of a connection that is passed on as TLS, what its hello says. */
function writeTls(writer: ProtobufWriter, { downstreamTls: tls, requestedServerName, listener }: StreamInfo): void {
  const ja3Fingerprint = listener?.ja3Fingerprint ?? "";
  if (tls === undefined && requestedServerName === "" && ja3Fingerprint === "") return;
  const start = writer.begin(4);
  if (tls !== undefined) {
    writeUint(writer, 1, tlsVersions[tls.version] ?? 0);
    writeWrapped(writer, 2, cipherSuites[tls.cipher]);
  }
  writeText(writer, 3, requestedServerName);
  if (tls !== undefined) {
    writeCertificate(writer, 4, tls.local, false);
    writeCertificate(writer, 5, tls.peer, true);
    writeText(writer, 6, tls.sessionId());
  }
  writeText(writer, 7, ja3Fingerprint);
  writer.end(start);
}

function writeCertificate(
  writer: ProtobufWriter,
  field: number,
  { uriSans, dnsSans, subject, issuer }: ShownCertificateInfo,
  hasIssuer: boolean,
): void {
  const start = writer.begin(field);
  for (const [number, names] of [
    [1, uriSans],
    [2, dnsSans],
  ] as const) {
    for (const name of names) {
      const san = writer.begin(1);
      writer.text(number, utf8Text(name));
      writer.end(san);
    }
  }
  writeText(writer, 2, subject);
  if (hasIssuer) writeText(writer, 3, issuer);
  writer.end(start);
}

/** `10.0.0.1:80`, `[::1]:80` or the path of a socket (core.v3.Address). */
function writeAddress(writer: ProtobufWriter, field: number, text: string | undefined): void {
  if (text === undefined || text === "") return;
  const start = writer.begin(field);
  if (text.startsWith("/")) {
    const pipe = writer.begin(2);
    writer.text(1, text);
    writer.end(pipe);
  } else {
    const socket = writer.begin(1);
    const colon = text.lastIndexOf(":");
    writer.text(2, text.startsWith("[") ? text.slice(1, colon - 1) : text.slice(0, colon));
    writer.uint(3, Number(text.slice(colon + 1)));
    writer.end(socket);
  }
  writer.end(start);
}

/** Nothing where it is empty, as protobuf has it. Characters of a head are the bytes of UTF-8. */
export function writeText(writer: ProtobufWriter, field: number, text: string | undefined): void {
  if (text !== undefined && text !== "") writer.text(field, utf8Text(text));
}

export function writeUint(writer: ProtobufWriter, field: number, value: number): void {
  if (value !== 0) writer.uint(field, value);
}

/** A UInt32Value. */
export function writeWrapped(writer: ProtobufWriter, field: number, value: number | undefined): void {
  if (value === undefined) return;
  const start = writer.begin(field);
  writeUint(writer, 1, value);
  writer.end(start);
}

/** Timestamps and durations have the same fields. */
function writeDuration(writer: ProtobufWriter, field: number, ms: number): void {
  const micros = Math.round(ms * 1000);
  const start = writer.begin(field);
  writeUint(writer, 1, Math.floor(micros / 1_000_000));
  writeUint(writer, 2, (micros % 1_000_000) * 1000);
  writer.end(start);
}
