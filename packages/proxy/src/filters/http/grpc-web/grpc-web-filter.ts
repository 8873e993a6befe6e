// Lets browsers speak gRPC: gRPC-Web of a client becomes gRPC for the host and back. Trailers, which no browser shows
// to a page, become the last message of the body; where the client asks for text, both bodies are base64
// (extensions.filters.http.grpc_web.v3.GrpcWeb; https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md).
import type { GrpcCallCounters, GrpcCallStats } from "../../../cluster/grpc-call-stats.ts";
import { type FilterStatus, type HttpFilter, type HttpStream, StreamSlot } from "../../../http/filter.ts";
import { grpcStatusOfHttp, isGrpc } from "../../../http/grpc-status.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import type { ResponseHead } from "../../../http/message.ts";
import { percentEncoded } from "../../../http/percent-encoded.ts";
import { Base64Reader } from "./base64-reader.ts";

const textTypes: ReadonlySet<string> = new Set(["application/grpc-web-text", "application/grpc-web-text+proto"]);
const binaryTypes: ReadonlySet<string> = new Set(["application/grpc-web", "application/grpc-web+proto"]);

/** Marks the trailers among the messages. */
const trailersFlag = 0x80;

/** Of an answer that is no gRPC so much goes into `grpc-message` (Envoy: MAX_BUFFERED_PLAINTEXT_LENGTH). */
const maxMessageBytes = 16_384;

const noBase64 = "Bad gRPC-web request, invalid base64 data.";

interface Call {
  readonly counters: GrpcCallCounters | undefined;
  /** Undefined: the request is binary. */
  readonly requestText: Base64Reader | undefined;
  readonly answersText: boolean;
  /** Of an answer that is no gRPC: what its body says, as far as it is told. */
  heldHead: ResponseHead | undefined;
  words: Buffer[];
  wordBytes: number;
}

export class GrpcWebFilter implements HttpFilter {
  readonly name: string;
  readonly #stats: GrpcCallStats;
  readonly #calls = new StreamSlot<Call>();

  constructor(name: string, stats: GrpcCallStats) {
    this.name = name;
    this.#stats = stats;
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    const { request, routeMatch, info } = stream;
    const { headers } = request;
    const type = headers.get("content-type");
    if (type === undefined || !(binaryTypes.has(type) || textTypes.has(type))) return "continue";
    const action = routeMatch?.action;
    const cluster = action?.type === "forward" ? action.clusterSlot.current : undefined;
    this.#calls.set(stream, {
      counters: cluster && this.#stats.of(cluster, request.path),
      requestText: textTypes.has(type) ? new Base64Reader() : undefined,
      answersText: textTypes.has(headers.get("accept") ?? ""),
      heldHead: undefined,
      words: [],
      wordBytes: 0,
    });
    info.isGrpcWeb = true;
    // It counts base64, and gRPC knows none.
    headers.remove("content-length");
    headers.set("content-type", "application/grpc");
    headers.set("te", "trailers");
    if (!headers.has("grpc-accept-encoding")) headers.set("grpc-accept-encoding", "identity");
    return "continue";
  }

  onRequestData(stream: HttpStream, chunk: Buffer, endStream: boolean): Buffer | undefined {
    const reader = this.#calls.get(stream)?.requestText;
    if (reader === undefined) return undefined;
    const bytes = reader.read(chunk);
    if (bytes !== undefined && (reader.isComplete || !endStream)) return bytes;
    const details = bytes === undefined ? "grpc_base_64_decode_failed" : "grpc_base_64_decode_failed_bad_size";
    stream.sendLocalReply({ status: 400, body: noBase64, details });
    return undefined;
  }

  onResponseHead(stream: HttpStream, response: ResponseHead, endStream: boolean): FilterStatus {
    const call = this.#calls.get(stream);
    if (call === undefined) return "continue";
    const { headers, status } = response;
    call.counters?.countStatus(headers.get("grpc-status"));
    const isMessages = status === 200 && (isGrpc(headers) || binaryTypes.has(mediaType(headers)));
    headers.remove("content-length");
    headers.set("content-type", `application/grpc-web${call.answersText ? "-text" : ""}+proto`);
    call.heldHead = endStream || isMessages ? undefined : response;
    call.words = [];
    call.wordBytes = 0;
    return call.heldHead === undefined ? "continue" : "stop";
  }

  onResponseData(stream: HttpStream, chunk: Buffer, endStream: boolean): Buffer | undefined {
    const call = this.#calls.get(stream);
    if (call === undefined) return undefined;
    if (call.heldHead === undefined) return call.answersText ? base64(chunk) : undefined;
    const room = maxMessageBytes - call.wordBytes;
    if (room > 0) {
      const kept = Buffer.from(chunk.subarray(0, room));
      call.words.push(kept);
      call.wordBytes += kept.length;
    }
    if (endStream) endWithStatus(stream, call, call.heldHead);
    return undefined;
  }

  onResponseTrailers(stream: HttpStream, trailers: HeaderMap): Buffer | undefined {
    const call = this.#calls.get(stream);
    if (call === undefined) return undefined;
    call.counters?.countStatus(trailers.get("grpc-status"));
    if (call.heldHead !== undefined) {
      endWithStatus(stream, call, call.heldHead);
      return undefined;
    }
    const frame = trailersFrame(trailers);
    return call.answersText ? base64(frame) : frame;
  }
}

/** A client learns from the head what became of its call, and from the body's words why. */
function endWithStatus(stream: HttpStream, call: Call, { status, headers }: ResponseHead): void {
  headers.set("grpc-message", percentEncoded(Buffer.concat(call.words)));
  headers.set("grpc-status", String(grpcStatusOfHttp(status)));
  headers.set("content-length", "0");
  stream.endResponseWithHead();
}

function mediaType(headers: HeaderMap): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trimEnd().toLowerCase();
}

function trailersFrame({ entries }: HeaderMap): Buffer {
  let text = "";
  for (let index = 0; index < entries.length; index += 2) text += `${entries[index]}:${entries[index + 1]}\r\n`;
  const body = Buffer.from(text, "latin1");
  const head = Buffer.from([trailersFlag, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
}

/** Each chunk with padding of its own, so that none waits for the next. */
function base64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}
