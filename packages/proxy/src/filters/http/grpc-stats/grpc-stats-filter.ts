// Counts gRPC calls, how they ended and their messages (extensions.filters.http.grpc_stats.v3.FilterConfig). What is no
// gRPC is asked for its content type and left alone; of bodies only the headers of messages are looked at.
import type { GrpcCallCounters, GrpcCallStats } from "../../../cluster/grpc-call-stats.ts";
import { type FilterStatus, type HttpFilter, type HttpStream, StreamSlot } from "../../../http/filter.ts";
import { GrpcFrameCounter } from "../../../http/grpc-frame-counter.ts";
import { isGrpc } from "../../../http/grpc-status.ts";
import type { HeaderMap } from "../../../http/header-map.ts";
import type { ResponseHead } from "../../../http/message.ts";

export interface GrpcStatsOptions {
  readonly name: string;
  readonly stats: GrpcCallStats;
  /** Other filters and access logs learn the numbers of messages (emit_filter_state). */
  readonly tellsMessages: boolean;
  /** Time from the end of the request to that of the answer (enable_upstream_stats). */
  readonly timesUpstream: boolean;
}

interface Call {
  /** Undefined where no cluster is meant, or the path is no method. */
  readonly counters: GrpcCallCounters | undefined;
  readonly request: GrpcFrameCounter;
  readonly response: GrpcFrameCounter;
  isGrpcResponse: boolean;
  /** 0 while it is under way. */
  requestEndedMs: number;
}

export class GrpcStatsFilter implements HttpFilter {
  readonly name: string;
  readonly #options: GrpcStatsOptions;
  readonly #calls = new StreamSlot<Call>();

  constructor(options: GrpcStatsOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onRequestHead(stream: HttpStream, endStream: boolean): FilterStatus {
    const { request, routeMatch } = stream;
    if (!isGrpc(request.headers)) return "continue";
    const action = routeMatch?.action;
    const cluster = action?.type === "forward" ? action.clusterSlot.current : undefined;
    const call: Call = {
      counters: cluster && this.#options.stats.of(cluster, request.path),
      request: new GrpcFrameCounter(),
      response: new GrpcFrameCounter(),
      isGrpcResponse: false,
      requestEndedMs: 0,
    };
    this.#calls.set(stream, call);
    if (endStream) this.#endRequest(stream, call);
    return "continue";
  }

  onRequestData(stream: HttpStream, chunk: Buffer, endStream: boolean): void {
    const call = this.#calls.get(stream);
    if (call === undefined) return;
    this.#count(stream, call, call.request.inspect(chunk), "request_message_count");
    if (endStream) this.#endRequest(stream, call);
  }

  onRequestTrailers(stream: HttpStream): void {
    const call = this.#calls.get(stream);
    if (call !== undefined) this.#endRequest(stream, call);
  }

  onResponseHead(stream: HttpStream, { status, headers }: ResponseHead, endStream: boolean): void {
    const call = this.#calls.get(stream);
    if (call === undefined) return;
    call.isGrpcResponse = status === 200 && isGrpc(headers);
    call.counters?.countStatus(headers.get("grpc-status"));
    if (endStream) this.#time(stream, call);
  }

  onResponseData(stream: HttpStream, chunk: Buffer): void {
    const call = this.#calls.get(stream);
    if (call?.isGrpcResponse !== true) return;
    this.#count(stream, call, call.response.inspect(chunk), "response_message_count");
  }

  onResponseTrailers(stream: HttpStream, trailers: HeaderMap): void {
    const call = this.#calls.get(stream);
    if (call === undefined) return;
    call.counters?.countStatus(trailers.get("grpc-status"));
    this.#time(stream, call);
  }

  #count(
    { info }: HttpStream,
    call: Call,
    messages: number,
    stat: "request_message_count" | "response_message_count",
  ): void {
    if (messages === 0) return;
    if (this.#options.tellsMessages) info.grpcMessages ??= call;
    call.counters?.add(stat, messages);
  }

  #endRequest({ dataPath }: HttpStream, call: Call): void {
    call.requestEndedMs = dataPath.turn.nowMs;
  }

  /** Of what has gone to a host, and whose answer has come as a whole. */
  #time({ info, dataPath }: HttpStream, call: Call): void {
    if (!this.#options.timesUpstream || call.requestEndedMs === 0 || info.attemptCount === 0) return;
    call.counters?.recordUpstreamTime(dataPath.turn.nowMs - call.requestEndedMs);
  }
}
