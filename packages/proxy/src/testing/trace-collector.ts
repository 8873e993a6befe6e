// A collector of spans, log records and metrics for tests: OTLP over gRPC and over HTTP, Zipkin's JSON and protobuf. It
// keeps what it was sent, and answers as a test says.
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { Writable } from "node:stream";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { ExportTraceServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/trace/v1/trace_service_pb";
import { type ByteOrder, decodeZipkinSpans, type ZipkinSpan } from "./zipkin-decoder.ts";

export interface SeenSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly status: string;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly resource: Readonly<Record<string, unknown>>;
  /** Zipkin's. */
  readonly isShared: boolean;
  /** Headers of the request that brought it, `:path` among them. */
  readonly sentBy: RequestHeaders;
}

type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * `endless`: an answer that never stops; `cut`: one that breaks off; `hints`: interim answers without an end; `goaway`:
 * the connection is called off, and the request on it never answered (over HTTP/1.1 it is cut); `partial`: all is
 * taken, and one of it then rejected.
 */
export type CollectorAnswer =
  | "good"
  | "late"
  | "reset"
  | "unavailable"
  | "garbage"
  | "endless"
  | "cut"
  | "hints"
  | "goaway"
  | "partial";

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: string;
  readonly boolValue?: boolean;
  readonly doubleValue?: number;
}

interface OtlpAttribute {
  readonly key: string;
  readonly value?: OtlpValue;
}

interface OtlpSpan extends Readonly<Record<string, unknown>> {
  readonly attributes?: readonly OtlpAttribute[];
  readonly events?: readonly { readonly name?: string; readonly attributes?: readonly OtlpAttribute[] }[];
  readonly status?: { readonly code?: string };
}

interface OtlpRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly OtlpAttribute[] };
    readonly scopeSpans?: readonly { readonly scope?: object; readonly spans?: readonly OtlpSpan[] }[];
  }[];
}

export class TraceCollector {
  readonly spans: SeenSpan[] = [];
  /** Requests with log records, as they came. */
  readonly logs: Buffer[] = [];
  /** Requests with metrics, likewise. */
  readonly metrics: Buffer[] = [];
  /** Headers of each request. */
  readonly requests: RequestHeaders[] = [];
  answer: CollectorAnswer = "good";
  readonly #http = http.createServer();
  readonly #grpc = http2.createServer();
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #zipkinIds: ByteOrder;

  /** In which order Zipkin's protobuf brings the bytes of a span's id. */
  constructor(zipkinIds: ByteOrder = "as sent") {
    this.#zipkinIds = zipkinIds;
  }

  async start(): Promise<{ readonly httpPort: number; readonly grpcPort: number }> {
    // A proxy that uses a connection just as it is closed loses what it sends.
    this.#http.keepAliveTimeout = 0;
    this.#http.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => this.#answerHttp(request, response, Buffer.concat(chunks)));
    });
    this.#grpc.on("session", (session) => this.#sessions.add(session));
    this.#grpc.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on("error", () => undefined);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => this.#answerGrpc(stream, headers, Buffer.concat(chunks)));
    });
    return { httpPort: await listening(this.#http), grpcPort: await listening(this.#grpc) };
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
    this.#grpc.close();
    this.#http.close();
    this.#http.closeAllConnections();
  }

  #answerHttp(request: http.IncomingMessage, response: http.ServerResponse, body: Buffer): void {
    const headers = { ":path": request.url, ...request.headers };
    this.requests.push(headers);
    if (this.answer === "late") return;
    if (this.answer === "reset" || this.answer === "goaway") return void request.socket.destroy();
    if (this.answer === "hints")
      return pour(request.socket, Buffer.from("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000)));
    if (this.answer === "endless") return pour(response.writeHead(200), Buffer.alloc(pouredBytes, 120));
    if (this.answer === "cut") {
      request.socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
      return;
    }
    if (request.headers["content-type"] === "application/json") {
      this.spans.push(...(JSON.parse(body.toString()) as ZipkinSpan[]).map((span) => spanOfZipkin(span, headers)));
    } else if (request.url?.startsWith("/api/v2/spans") === true) {
      const spans = decodeZipkinSpans(body, this.#zipkinIds);
      this.spans.push(...spans.map((span) => spanOfZipkin(span, headers)));
    } else if (request.headers["content-type"] === "application/x-protobuf") this.#take(headers, body);
    if (this.answer === "garbage") return void request.socket.end("HTTP/9.9 what\r\n\r\n");
    if (this.answer === "partial") {
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end(partialSuccess);
      return;
    }
    response.writeHead(this.answer === "good" ? 202 : 503).end();
  }

  #answerGrpc(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, body: Buffer): void {
    this.requests.push(headers);
    if (this.answer === "late" || stream.destroyed) return;
    if (this.answer === "reset") return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    const head = { ":status": 200, "content-type": "application/grpc" };
    if (this.answer === "unavailable") return stream.respond({ ...head, "grpc-status": "14" }, { endStream: true });
    if (this.answer === "goaway") {
      stream.session!.goaway(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM, 0);
      stream.session!.close();
      return;
    }
    if (this.answer === "hints") return pourHints(stream);
    if (this.answer === "endless" || this.answer === "cut") {
      stream.respond(head);
      if (this.answer === "endless") return pour(stream, Buffer.alloc(pouredBytes, 120));
      stream.write(Buffer.alloc(3), () => stream.session?.destroy());
      return;
    }
    this.#take(headers, body.subarray(5));
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => {
      if (!stream.destroyed) stream.sendTrailers({ "grpc-status": "0" });
    });
    if (this.answer === "partial") stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, 4]), partialSuccess]));
    else stream.end(this.answer === "garbage" ? Buffer.from([9, 9, 9, 9]) : Buffer.alloc(5));
  }

  #take(headers: RequestHeaders, body: Buffer): void {
    const path = String(headers[":path"]).toLowerCase();
    if (path.includes("logs")) {
      this.logs.push(body);
      return;
    }
    if (path.includes("metrics")) {
      this.metrics.push(body);
      return;
    }
    const schema = ExportTraceServiceRequestSchema;
    const { resourceSpans = [] } = toJson(schema, fromBinary(schema, body)) as OtlpRequest;
    for (const { resource, scopeSpans = [] } of resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans = [] }) => spans)) {
        this.spans.push({
          name: text(span["name"]),
          kind: text(span["kind"]),
          traceId: hex(span["traceId"]),
          spanId: hex(span["spanId"]),
          parentSpanId: hex(span["parentSpanId"]),
          traceState: text(span["traceState"]),
          attributes: record(span.attributes),
          events: (span.events ?? []).map(({ name = "", attributes }) => ({ name, attributes: record(attributes) })),
          status: span.status?.code ?? "",
          startMs: msOf(span["startTimeUnixNano"]),
          endMs: msOf(span["endTimeUnixNano"]),
          resource: record(resource?.attributes),
          isShared: false,
          sentBy: headers,
        });
      }
    }
  }
}

/** `ExportTracePartialSuccess` with one span that is rejected. */
const partialSuccess = Buffer.from([0x0a, 2, 0x08, 1]);

const pouredBytes = 16 * 1024;

/** As fast as it is taken, until nobody takes it any more. */
function pour(into: Writable, chunk: Buffer): void {
  const more = (): void => {
    while (!into.destroyed && into.write(chunk)) continue;
  };
  into.on("drain", more);
  into.on("error", () => undefined);
  more();
}

function pourHints(stream: http2.ServerHttp2Stream): void {
  if (stream.destroyed) return;
  for (let count = 0; count < 100; count += 1) stream.additionalHeaders({ ":status": 103, link: "</x>" });
  setImmediate(pourHints, stream);
}

function msOf(nanos: unknown): number {
  return Number(BigInt(text(nanos) || "0") / 1000n) / 1000;
}

function spanOfZipkin(span: ZipkinSpan, sentBy: RequestHeaders): SeenSpan {
  return {
    name: span.name,
    kind: span.kind,
    traceId: span.traceId,
    spanId: span.id,
    parentSpanId: span.parentId ?? "",
    traceState: "",
    attributes: span.tags ?? {},
    events: (span.annotations ?? []).map(({ value }) => ({ name: value, attributes: {} })),
    status: "",
    startMs: span.timestamp / 1000,
    endMs: (span.timestamp + span.duration) / 1000,
    resource: { "service.name": span.localEndpoint?.serviceName },
    isShared: span.shared ?? false,
    sentBy,
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function hex(value: unknown): string {
  return Buffer.from(text(value), "base64").toString("hex");
}

function record(list: readonly OtlpAttribute[] | undefined): Readonly<Record<string, unknown>> {
  return Object.fromEntries((list ?? []).map(({ key, value }) => [key, value?.stringValue ?? value]));
}

async function listening(server: http.Server | http2.Http2Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}
