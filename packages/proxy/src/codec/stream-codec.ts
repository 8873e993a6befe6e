// The line between codecs and everything that handles requests. A codec owns the connection (`server-codec.ts`); on it
// each request is a stream of its own: heads, body chunks, trailers, resets with their reasons, and backpressure in
// both directions, with nothing of HTTP/1.1 or HTTP/2 showing through. Chunks are views on a reused read buffer: who
// keeps one copies it.
import type { HeaderMap } from "../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamBytes } from "../http/stream-bytes.ts";

/** Why a stream ended early, in Envoy's words (`StreamResetReason`), as `%RESPONSE_CODE_DETAILS%` shows them. */
export type StreamResetReason =
  | "local_reset"
  | "remote_reset"
  | "remote_refused_stream_reset"
  | "connection_termination"
  | "remote_connection_failure"
  | "local_connection_failure"
  | "connection_timeout"
  | "overflow"
  | "protocol_error";

/** What a peer sent that the codec refuses: the answer that it gets, and Envoy's response-code details. */
export class HttpProtocolError extends Error {
  readonly status: number;
  readonly details: string;

  constructor(status: number, details: string) {
    super(details);
    this.status = status;
    this.details = details;
  }
}

/** One request as a server codec hands it over. */
export interface RequestReceiver {
  onRequestHead(head: RequestHead, endStream: boolean): void;
  onRequestData(chunk: Buffer, endStream: boolean): void;
  /** Ends the request. */
  onRequestTrailers(trailers: HeaderMap): void;
  /** The client has given the stream up, or has gone; nothing can be answered any more. */
  onDownstreamReset(reason: StreamResetReason): void;
  /** The client broke the protocol in the middle of its request. */
  onRequestError(error: HttpProtocolError): void;
  /** All of the response has been written; the sender counts for the next stream once this returns. */
  onResponseWritten(): void;
  /** What was written has drained after `isOverHighWatermark` was true. */
  onDownstreamDrained(): void;
}

/** The way back: one response, sent in order. The end of the response ends the stream for the sender. */
export interface ResponseSender {
  readonly bytes: StreamBytes;
  sendInformational(status: number, headers: HeaderMap): void;
  sendResponseHead(head: ResponseHead, endStream: boolean): void;
  sendResponseData(chunk: Buffer, endStream: boolean): void;
  sendResponseTrailers(trailers: HeaderMap): void;
  /** Ends the stream without completing the response; HTTP/1.1 has only the connection to close for that. */
  resetStream(reason: StreamResetReason): void;
  /** More bytes wait for the client than the buffer limit allows. */
  isOverHighWatermark(): boolean;
  /** Stops and restarts reading of the request's body. */
  pauseRequest(): void;
  resumeRequest(): void;
  /**
   * The stream is over with its response, whatever of the request is yet to come. HTTP/1.1 has only the end of the
   * connection for that. That a connection shall take no further requests is another thing: `ServerCodec.drain`.
   */
  endWithResponse(): void;
  /** True when the answer is the start of a tunnel: bytes flow raw both ways after its head. */
  upgradeToTunnel(): void;
}

/** One response as a client codec hands it over. */
export interface ResponseReceiver {
  onInformational(status: number, headers: HeaderMap): void;
  onResponseHead(head: ResponseHead, endStream: boolean): void;
  onResponseData(chunk: Buffer, endStream: boolean): void;
  onResponseTrailers(trailers: HeaderMap): void;
  /** `hasLeft`: a byte of the request may have reached the host. */
  onUpstreamReset(reason: StreamResetReason, hasLeft: boolean): void;
  onUpstreamDrained(): void;
}

/** The way to the upstream: one request, sent in order. */
export interface RequestSender {
  readonly bytes: StreamBytes;
  sendRequestHead(head: RequestHead, endStream: boolean): void;
  sendRequestData(chunk: Buffer, endStream: boolean): void;
  sendRequestTrailers(trailers: HeaderMap): void;
  /** Gives the stream up; HTTP/1.1 closes the connection. */
  resetStream(reason: StreamResetReason): void;
  isOverHighWatermark(): boolean;
  /**
   * Of a response head that has just come, or an end without one: the host may have closed before it could read the
   * request.
   */
  mayHaveCrossed(): boolean;
  pauseResponse(): void;
  resumeResponse(): void;
}
