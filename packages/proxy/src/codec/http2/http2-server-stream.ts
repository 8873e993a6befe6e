// A client's request and our answer, on one stream of HTTP/2.
import type { HeaderMap } from "../../http/header-map.ts";
import { isTunnelStart, type RequestHead, type ResponseHead } from "../../http/message.ts";
import type { RequestReceiver, ResponseSender, StreamResetReason } from "../stream-codec.ts";
import { errorCodes } from "./frame.ts";
import type { Http2Session } from "./http2-session.ts";
import { errorCodeOf, Http2Stream, noBytes } from "./http2-stream.ts";

const statusFieldBytes = ":status200".length;

export class Http2ServerStream extends Http2Stream implements ResponseSender {
  /** Set once the owner has taken the request; unset when nothing is told to it any more. */
  receiver: RequestReceiver | undefined = undefined;
  readonly #method: string;
  /** A CONNECT, which carries no fields behind its head (RFC 9113 §8.5). */
  readonly isConnect: boolean;
  #hasHead = false;
  #hasBody = true;
  #isTunnel = false;

  constructor(id: number, session: Http2Session, head: RequestHead | undefined) {
    super(id, session);
    this.#method = head?.method ?? "";
    this.isConnect = head?.upgrade !== undefined;
  }

  get isUnanswered(): boolean {
    return !this.#hasHead;
  }

  protected override receiveData(bytes: Buffer, endStream: boolean): void {
    this.receiver?.onRequestData(bytes, endStream);
  }

  onTrailers(trailers: HeaderMap): void {
    this.isReceiveOver = true;
    this.receiver?.onRequestTrailers(trailers);
    this.closeIfOver();
  }

  protected override onDrained(): void {
    this.receiver?.onDownstreamDrained();
  }

  protected override onReset(reason: StreamResetReason): void {
    const { receiver } = this;
    this.receiver = undefined;
    receiver?.onDownstreamReset(reason);
  }

  protected override onClosed(): void {
    this.receiver = undefined;
  }

  sendInformational(status: number, headers: HeaderMap): void {
    // 101 has no meaning here (RFC 9113 §8.6).
    if (this.#hasHead || this.isSendOver || status === 101) return;
    this.#writeHead(status, headers.entries, false);
  }

  upgradeToTunnel(): void {
    this.#isTunnel = true;
  }

  sendResponseHead(head: ResponseHead, endStream: boolean): void {
    if (this.isSendOver || this.#hasHead) return;
    this.#hasHead = true;
    const isTunnel = this.#isTunnel && (head.upgrade !== undefined || isTunnelStart(this.#method, head));
    // What HTTP/1.1 says with 101 is the success of an extended CONNECT (RFC 8441 §5).
    const status = head.status === 101 ? 200 : head.status;
    this.#hasBody = isTunnel || (this.#method !== "HEAD" && status !== 204 && status !== 304);
    this.#writeHead(status, head.headers.entries, endStream);
    if (endStream) this.endSending();
  }

  #writeHead(status: number, entries: readonly string[], endStream: boolean): void {
    const { frames } = this.session;
    const encoder = frames.beginFields(entries, statusFieldBytes);
    encoder.field(":status", String(status));
    encoder.fields(entries);
    this.countFieldsSent(frames.endFields(this.id, endStream));
  }

  sendResponseData(chunk: Buffer, endStream: boolean): void {
    if (this.#hasBody) this.sendData(chunk, endStream);
    else if (endStream) this.sendData(noBytes, true);
  }

  sendResponseTrailers(trailers: HeaderMap): void {
    if (this.#hasBody) this.sendTrailerFields(trailers);
    else this.sendData(noBytes, true);
  }

  // The stream is over with its answer; a client that goes on sending is told to stop (RFC 9113 §8.1).
  protected override onSendEnd(): void {
    const { receiver } = this;
    this.receiver = undefined;
    if (!this.isReceiveOver) this.reset(errorCodes.noError);
    receiver?.onResponseWritten();
  }

  resetStream(reason: StreamResetReason): void {
    this.receiver = undefined;
    this.reset(errorCodeOf(reason));
  }

  pauseRequest(): void {
    this.pauseReceiving();
  }

  resumeRequest(): void {
    this.resumeReceiving();
  }

  endWithResponse(): void {
    // As every answer does.
  }
}
