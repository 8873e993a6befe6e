// An access log service for tests (envoy.service.accesslog.v3): keeps what each call brought, and behaves as a test
// says.
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { createRegistry, fromBinary, toJson } from "@bufbuild/protobuf";
import { FilterObjectSchema } from "@tulle/xds/envoy/extensions/filters/http/grpc_stats/v3/config_pb";
import { StreamAccessLogsMessageSchema } from "@tulle/xds/envoy/service/accesslog/v3/als_pb";
import { MessageReader } from "../upstream/grpc-framing.ts";

/**
 * `good` answers nothing while the call lasts, as real ones do. `hangs` reads nothing. `refuses` ends the call at once
 * with a status, `resets` breaks it off, `garbage` sends what is no message.
 */
export type ServiceBehaviour = "good" | "hangs" | "refuses" | "resets" | "garbage";

export interface LogMessage {
  /** The number of its call. */
  readonly call: number;
  readonly identifier?: { readonly logName?: string; readonly node?: Readonly<Record<string, unknown>> };
  readonly httpLogs?: { readonly logEntry?: readonly LogEntry[] };
  readonly tcpLogs?: { readonly logEntry?: readonly LogEntry[] };
}

export type LogEntry = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Objects of the filter state that entries have. */
const registry = createRegistry(FilterObjectSchema);

export class AccessLogService {
  readonly messages: LogMessage[] = [];
  /** Headers of each call. */
  readonly calls: http2.IncomingHttpHeaders[] = [];
  /** Calls that the client has ended as gRPC has it. */
  endedCalls = 0;
  behaviour: ServiceBehaviour = "good";
  #callCount = 0;
  readonly #logNames = new Map<number, string>();
  readonly #server = http2.createServer();
  readonly #sessions = new Set<http2.ServerHttp2Session>();

  async start(): Promise<number> {
    this.#server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => undefined);
      session.once("close", () => this.#sessions.delete(session));
    });
    this.#server.on("stream", (stream: http2.ServerHttp2Stream, headers) => this.#onCall(stream, headers));
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks all connections off. */
  breakOff(): void {
    for (const session of this.#sessions) session.destroy();
  }

  close(): void {
    this.breakOff();
    this.#server.close();
  }

  /** Entries of all messages of that log, in their order. */
  entries(logName: string): readonly LogEntry[] {
    return this.messages
      .filter(({ call }) => this.#logNames.get(call) === logName)
      .flatMap(({ httpLogs, tcpLogs }) => httpLogs?.logEntry ?? tcpLogs?.logEntry ?? []);
  }

  #onCall(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    this.calls.push(headers);
    const call = this.#callCount;
    this.#callCount += 1;
    stream.on("error", () => undefined);
    const head = { ":status": 200, "content-type": "application/grpc" };
    switch (this.behaviour) {
      case "hangs":
        return;
      case "refuses":
        stream.respond({ ...head, "grpc-status": "12", "grpc-message": "no%20logs" }, { endStream: true });
        return;
      case "resets":
        stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
        return;
      case "garbage":
        stream.respond(head);
        stream.write(Buffer.from("garbage, and no message of gRPC"));
        return;
      case "good":
    }
    const reader = new MessageReader(1 << 24, (bytes) => {
      const schema = StreamAccessLogsMessageSchema;
      const json = toJson(schema, fromBinary(schema, bytes), { registry });
      const message = { call, ...(json as Omit<LogMessage, "call">) };
      if (message.identifier?.logName !== undefined) this.#logNames.set(call, message.identifier.logName);
      this.messages.push(message);
    });
    stream.on("data", (chunk: Buffer) => reader.take(chunk));
    stream.on("end", () => {
      this.endedCalls += 1;
      if (stream.destroyed) return;
      stream.respond(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end();
    });
  }
}
