// The span of a call that the proxy makes by itself for a request, such as to an authorizer: a client's, whose parent
// is the request's (Envoy: `Http::AsyncClient`'s and `Grpc::AsyncClient`'s child spans).
import { newSpanId } from "@tulle/telemetry";
import type { HeaderMap } from "../http/header-map.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { DataPath } from "../worker/data-path.ts";
import { isError } from "./span-tags.ts";
import type { ActiveSpan, SpanWriter } from "./active-span.ts";

export interface CallEnd {
  /** `async NAME egress` */
  readonly name: string;
  /** Of HTTP, 0 where there is none: there was no answer, or it was a call of gRPC. */
  readonly status: number;
  readonly grpcStatus: number | undefined;
  readonly isCanceled: boolean;
  readonly tags: readonly (readonly [name: string, value: string])[];
}

export class CallSpan {
  readonly #span: ActiveSpan;
  readonly #tracer: SpanWriter;
  readonly #info: StreamInfo;
  readonly #dataPath: DataPath;
  readonly #spanId = newSpanId();
  readonly #startMs: number;
  #hasEnded = false;

  private constructor(span: ActiveSpan, tracer: SpanWriter, info: StreamInfo, dataPath: DataPath) {
    this.#span = span;
    this.#tracer = tracer;
    this.#info = info;
    this.#dataPath = dataPath;
    this.#startMs = this.#nowMs();
  }

  /** Undefined where the request belongs to no trace. */
  static begin(info: StreamInfo, dataPath: DataPath): CallSpan | undefined {
    const tracer = info.span?.tracer;
    return tracer === undefined ? undefined : new CallSpan(info.span!, tracer, info, dataPath);
  }

  /** Tells whoever is called, sampled or not. */
  inject(headers: HeaderMap): void {
    this.#tracer.inject(this.#span, headers, this.#spanId);
  }

  /** Once; a second end is none. */
  end({ name, status, grpcStatus, isCanceled, tags }: CallEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#span.isSampled) return;
    const tracer = this.#tracer;
    tracer.begin(this.#span, {
      spanId: this.#spanId,
      parentSpanId: this.#span.spanId,
      name: `async ${name} egress`,
      kind: "client",
      isOfRequest: false,
      startMs: this.#startMs,
      endMs: this.#nowMs(),
    });
    tracer.tag("component", "proxy");
    for (const [key, value] of tags) tracer.tag(key, value);
    const isFault = grpcStatus === undefined ? isError(status, undefined) : grpcStatus !== 0;
    if (isFault && !isCanceled) tracer.tag("error", "true");
    tracer.end(status, grpcStatus);
  }

  #nowMs(): number {
    return this.#info.startTimeMs + this.#dataPath.clock.monotonicMs() - this.#info.startMonotonicMs;
  }
}
