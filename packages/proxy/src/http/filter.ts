// An HTTP filter as the data path sees it. A filter is one folder under `filters/`: its configuration type, its compile
// function, these hooks, its test; `filters/table.ts` lists them all. One instance serves every stream of a connection
// manager; what it keeps for a stream lies in a `StreamSlot` (Envoy: `Http::StreamFilter`).
import type { Logger } from "@tulle/telemetry";
import type { DataPath } from "../worker/data-path.ts";
import type { TryEnd } from "../http-connection-manager/stream-observer.ts";
import type { RouteMatch } from "../route/route-table.ts";
import type { HeaderMap } from "./header-map.ts";
import type { RequestHead, ResponseHead } from "./message.ts";
import type { ResponseFlag } from "./response-flags.ts";
import type { StreamInfo } from "./stream-info.ts";

/**
 * `continue`: the next filter runs. `stop`: the filter goes on later with `stream.continueRequest()`, or has answered
 * with `stream.sendLocalReply()`; body bytes wait meanwhile under the stream's buffer limit.
 */
export type FilterStatus = "continue" | "stop";

export interface HttpFilter {
  /** Name in the HTTP connection manager's list, such as `envoy.filters.http.router`. */
  readonly name: string;
  onRequestHead?(stream: HttpStream, endStream: boolean): FilterStatus;
  /** `chunk` is a view that is valid during the call. What is returned goes on in its place. */
  onRequestData?(stream: HttpStream, chunk: Buffer, endStream: boolean): Buffer | void;
  onRequestTrailers?(stream: HttpStream, trailers: HeaderMap): void;
  /** More of the body waits while this filter holds the request: see `HttpStream.waitingBody`. */
  onRequestWaiting?(stream: HttpStream, endStream: boolean): void;
  /** `stop`: this filter alone sees the body that follows, and ends the response by `stream.endResponseWithHead()`. */
  onResponseHead?(stream: HttpStream, response: ResponseHead, endStream: boolean): FilterStatus | void;
  /** What is returned goes on in the chunk's place. */
  onResponseData?(stream: HttpStream, chunk: Buffer, endStream: boolean): Buffer | void;
  /**
   * They end the response. A filter may change them; where the client's connection carries none they go no further.
   * What is returned ends the body in their place.
   */
  onResponseTrailers?(stream: HttpStream, trailers: HeaderMap): Buffer | void;
  /** What waited for the client has been taken by it (see `isOverHighWatermark`). */
  onDownstreamDrained?(stream: HttpStream): void;
  /** The stream has ended in whatever way; `stream.info` is complete. */
  onComplete?(stream: HttpStream): void;
}

/** A filter's own place in every stream: what it keeps there goes with the stream. */
export class StreamSlot<Kept> {
  get(stream: HttpStream): Kept | undefined {
    return stream.slots?.get(this) as Kept | undefined;
  }

  set(stream: HttpStream, kept: Kept): void {
    (stream.slots ??= new Map()).set(this, kept);
  }

  delete(stream: HttpStream): void {
    stream.slots?.delete(this);
  }
}

export interface LocalReply {
  readonly status: number;
  readonly body: string | Buffer;
  readonly flag?: ResponseFlag;
  /** `%RESPONSE_CODE_DETAILS%`. */
  readonly details: string;
  readonly headers?: HeaderMap;
  /** To a gRPC client; left out = what the HTTP status says. */
  readonly grpcStatus?: number;
}

/** One request and its response, seen by filters. */
export interface HttpStream {
  readonly info: StreamInfo;
  readonly request: RequestHead;
  /** Route of the request, matched before the first filter runs; undefined = no route. */
  readonly routeMatch: RouteMatch | undefined;
  /** Of filters, by their `StreamSlot`; undefined until one keeps something. */
  slots: Map<object, unknown> | undefined;
  /** The terminal filter's own place: nearly every request needs it. */
  terminalState: unknown;
  readonly log: Logger;
  readonly dataPath: DataPath;
  /** Bytes that may wait for this stream in either direction before the side that sends them is paused. */
  readonly bufferLimitBytes: number;
  /** Matches again after a filter has changed what routing depends on. */
  clearRouteCache(): void;
  continueRequest(): void;
  /** The terminal filter is about to send the request to `info.upstreamHost`: observers are told. */
  beginTry(): void;
  /** That try has ended without an answer for the client. */
  endTry(end: TryEnd): void;
  /** Of the request that a filter holds, as far as it has come. */
  readonly waitingBody: readonly Buffer[];
  readonly waitingBytes: number;
  /**
   * A filter that looks at the body itself: so many bytes may wait before the client is paused, if that is more than
   * the limit.
   */
  raiseWaitingLimit(bytes: number): void;
  /** Answers in the upstream's place; once a response has begun it can only be cut off. */
  sendLocalReply(reply: LocalReply): void;

  sendInformational(status: number, headers: HeaderMap): void;
  /** The response; it passes the filters in reverse order. */
  sendResponseHead(response: ResponseHead, endStream: boolean): void;
  sendResponseData(chunk: Buffer, endStream: boolean): void;
  sendResponseTrailers(trailers: HeaderMap): void;
  /** Sends the head that this filter has stopped, without a body. */
  endResponseWithHead(): void;
  /** The response head that follows turns the stream into a tunnel. */
  acceptUpgrade(): void;
  /** Cuts off a response that has begun. */
  resetStream(flag: ResponseFlag, details: string): void;
  readonly responseStarted: boolean;
  /** More waits for the client than the limit allows: send no more until `onDownstreamDrained`. */
  isOverHighWatermark(): boolean;
  pauseRequest(): void;
  resumeRequest(): void;
}
