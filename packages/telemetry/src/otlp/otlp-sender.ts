// What a process tells of itself, one request after another, to a collector by OTLP/HTTP or OTLP/gRPC
// (https://opentelemetry.io/docs/specs/otlp/). Both libraries are loaded with the first request: whoever sends nothing
// pays nothing.
import type { ClientHttp2Session } from "node:http2";
import type { ExporterSettings } from "./exporter-environment.ts";
import { otlpEnvelope, otlpMethods } from "./otlp-message.ts";

/** Of an answer nothing is needed but its status. */
const maxResponseBytes = 64 * 1024;

export class OtlpSender {
  readonly #settings: ExporterSettings;
  readonly #envelope: (items: Buffer) => Buffer;
  readonly #closed = new AbortController();
  #session: ClientHttp2Session | undefined;

  /** `version`: the product's. */
  constructor(settings: ExporterSettings, version: string) {
    const { resource, serviceName } = settings;
    this.#settings = settings;
    const own = { "service.name": serviceName, "service.version": version, "process.pid": `${process.pid}` };
    this.#envelope = otlpEnvelope({
      resource: Object.entries({ ...resource, ...own }),
      scope: { name: "tulle", version },
    });
  }

  /** Whether the collector took the items, which are copied at once. There is no second try. */
  async send(items: Buffer): Promise<boolean> {
    if (this.#closed.signal.aborted) return false;
    const body = this.#envelope(items);
    return this.#settings.protocol === "grpc" ? this.#sendGrpc(body) : this.#sendHttp(body);
  }

  /** Gives up the request under way, too. */
  close(): void {
    this.#closed.abort();
    this.#session?.destroy();
  }

  #sendHttp(body: Buffer): Promise<boolean> {
    const { endpoint, headers, timeoutMs, rootsPem } = this.#settings;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { request } = process.getBuiltinModule(endpoint.protocol === "https:" ? "node:https" : "node:http");
    const sent = request(endpoint, {
      method: "POST",
      headers: { ...headers, "content-type": "application/x-protobuf", "content-length": body.length },
      signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(timeoutMs)]),
      ...(rootsPem === undefined ? {} : { ca: rootsPem }),
    });
    sent.on("error", () => resolve(false));
    sent.on("response", (response) => {
      const { statusCode = 0 } = response;
      let bytes = 0;
      response.on("data", (chunk: Buffer) => (bytes += chunk.length) > maxResponseBytes && sent.destroy());
      response.on("error", () => resolve(false));
      response.on("close", () => resolve(statusCode >= 200 && statusCode < 300));
    });
    sent.end(body);
    return promise;
  }

  #sendGrpc(body: Buffer): Promise<boolean> {
    const { headers, timeoutMs } = this.#settings;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const session = this.#openSession();
    const stream = session.request({
      ...headers,
      ":method": "POST",
      ":path": otlpMethods[this.#settings.signal],
      "content-type": "application/grpc",
      te: "trailers",
    });
    // What never ends is given up, with its connection: the next request opens another one.
    const timer = setTimeout(() => session.destroy(), timeoutMs);
    let status: unknown;
    let bytes = 0;
    const note = (fields: Readonly<Record<string, unknown>>): void => void (status = fields["grpc-status"] ?? status);
    stream.on("response", note).on("trailers", note);
    stream.on("data", (chunk: Buffer) => (bytes += chunk.length) > maxResponseBytes && session.destroy());
    stream.on("error", () => undefined);
    stream.on("close", () => {
      clearTimeout(timer);
      resolve(status === "0");
    });
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    stream.end(Buffer.concat([head, body]));
    return promise;
  }

  #openSession(): ClientHttp2Session {
    if (this.#session !== undefined && !this.#session.destroyed && !this.#session.closed) return this.#session;
    const { endpoint, rootsPem } = this.#settings;
    const { connect } = process.getBuiltinModule("node:http2");
    const session = connect(endpoint, rootsPem === undefined ? {} : { ca: rootsPem });
    session.on("error", () => session.destroy());
    // An idle connection keeps no process alive; a request does.
    session.unref();
    this.#session = session;
    return session;
  }
}
