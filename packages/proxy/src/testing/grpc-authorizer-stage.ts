// An authorizer that speaks gRPC, for tables that hold this proxy against Envoy: what it answers is for the test to
// say, and it keeps what it was asked.
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { fromBinary, fromJson, type JsonObject, toBinary, toJson } from "@bufbuild/protobuf";
import { CheckRequestSchema, CheckResponseSchema } from "@tulle/xds/envoy/service/auth/v3/external_auth_pb";

/** A CheckResponse, or how no such comes about. */
export type GrpcAnswer = JsonObject | "late" | "reset" | "unavailable" | "http" | "failed" | "garbage";

export class GrpcAuthorizerStage {
  readonly asked: JsonObject[] = [];
  /** `traceparent` of each call that has one. */
  readonly contexts: string[] = [];
  readonly #answerTo: (path: string) => GrpcAnswer;
  readonly #server = http2.createServer();
  readonly #sessions = new Set<http2.ServerHttp2Session>();

  /** By the path of the request that is judged; empty for a connection. */
  constructor(answerTo: (path: string) => GrpcAnswer) {
    this.#answerTo = answerTo;
  }

  async start(): Promise<number> {
    this.#server.on("session", (session) => this.#sessions.add(session));
    this.#server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
      const chunks: Buffer[] = [];
      stream.on("error", () => undefined);
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => this.#answer(stream, headers, Buffer.concat(chunks)));
    });
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
  }

  #answer(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders, body: Buffer): void {
    const request = toJson(CheckRequestSchema, fromBinary(CheckRequestSchema, body.subarray(5))) as JsonObject;
    const { ":path": rpc = "", ":authority": authority = "", "content-type": type = "", te = "" } = headers;
    if (headers["traceparent"] !== undefined) this.contexts.push(String(headers["traceparent"]));
    this.asked.push({ rpc, authority, type, te, request: comparable(request) });
    const attributes = request["attributes"] as { readonly request?: { readonly http: { readonly path: string } } };
    const answer = this.#answerTo(attributes.request?.http.path ?? "");
    const head = { ":status": 200, "content-type": "application/grpc" };
    if (answer === "late") return;
    if (answer === "reset") stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    else if (answer === "http") stream.respond({ ":status": 404 }, { endStream: true });
    else if (answer === "unavailable") stream.respond({ ...head, "grpc-status": "14" }, { endStream: true });
    else {
      const message =
        typeof answer === "string"
          ? Buffer.alloc(4)
          : toBinary(CheckResponseSchema, fromJson(CheckResponseSchema, answer));
      stream.respond(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": answer === "failed" ? "13" : "0" }));
      const prefix = Buffer.alloc(5);
      prefix.writeUInt32BE(message.length, 1);
      stream.end(Buffer.concat([prefix, message]));
    }
  }
}

/** Without what differs by nature: ports, times and numbers of streams. */
function comparable(request: JsonObject): JsonObject {
  const text = JSON.stringify(request, (key, value: unknown) => {
    if (key === "portValue" || key === "time" || key === "id" || key === "x-request-id") return "(any)";
    return value;
  });
  return JSON.parse(text) as JsonObject;
}
