// A request of ours and the host's answer, on one stream of HTTP/2. It has its number from the moment that its head is
// written: numbers rise in the order in which they go out (RFC 9113 §5.1.1).
import { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../../http/message.ts";
import type { RequestSender, ResponseReceiver, StreamResetReason } from "../stream-codec.ts";
import { acceptField, acceptOfKey, keyField } from "../websocket-key.ts";
import { errorCodes } from "./frame.ts";
import type { Http2Session } from "./http2-session.ts";
import { errorCodeOf, Http2Stream, noBytes } from "./http2-stream.ts";
import type { ResponseFields } from "./response-fields.ts";

/** Of a request, with the method of an extended CONNECT. */
const pseudoNameBytes = ":method:protocol:scheme:path:authorityCONNECT".length;

/** As over HTTP/1.1. */
const maxInformationalCount = 100;

/** The connection: numbers for streams whose heads are written, and how far it is in what it has sent and received. */
export interface ClientStreamOwner {
  takeStreamId(): number;
  onUnsentStreamEnd(): void;
  /** True where the host has not said yet what it takes: the head is sent once it has. */
  holdsUntilSettings(stream: Http2ClientStream): boolean;
  /** Of the next frame in the connection's output. */
  readonly position: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}

export class Http2ClientStream extends Http2Stream implements RequestSender {
  #receiver: ResponseReceiver | undefined;
  readonly #owner: ClientStreamOwner;
  #method = "";
  #upgrade: string | undefined = undefined;
  /** The client's of a WebSocket over HTTP/1.1. */
  #websocketKey = "";
  /** A head that waits until the host has said whether it takes such ones. */
  #heldHead: RequestHead | undefined = undefined;
  #hasHead = false;
  /** The answer has made it a tunnel: no frames of fields come any more (RFC 9113 §8.5). */
  isConnected = false;
  #informationalCount = 0;
  /** Of its head in the connection's output. */
  #position = 0;
  /** END_STREAM of the request has been written. */
  #isRequestWhole = false;
  /** What the connection had received when the head was written. */
  #receivedBefore = 0;

  constructor(session: Http2Session, receiver: ResponseReceiver, owner: ClientStreamOwner) {
    super(0, session);
    this.#receiver = receiver;
    this.#owner = owner;
  }

  sendRequestHead(head: RequestHead, endStream: boolean): void {
    if (this.isSendOver) return;
    this.#method = head.method;
    this.#upgrade = head.upgrade;
    const isConnect = head.method === "CONNECT";
    const isExtended = head.upgrade !== undefined && !isConnect;
    if (isExtended && this.#owner.holdsUntilSettings(this)) {
      this.#heldHead = head;
      if (endStream) this.sendData(noBytes, true);
      return;
    }
    if (isExtended && !this.session.peer.allowsConnect) {
      // The host has no way to change the protocol of a stream.
      const receiver = this.#receiver;
      this.#receiver = undefined;
      this.resetStream("protocol_error");
      receiver?.onUpstreamReset("protocol_error", false);
      return;
    }
    this.id = this.#owner.takeStreamId();
    this.session.add(this);
    this.#position = this.#owner.position;
    this.#receivedBefore = this.#owner.bytesReceived;
    const { method, scheme, path, authority, headers } = head;
    const { frames } = this.session;
    const valueBytes = method.length + scheme.length + path.length + authority.length + (head.upgrade?.length ?? 0);
    const encoder = frames.beginFields(headers.entries, pseudoNameBytes + valueBytes);
    encoder.field(":method", isExtended ? "CONNECT" : method);
    if (isExtended) encoder.field(":protocol", head.upgrade!);
    if (!isConnect) {
      encoder.field(":scheme", scheme);
      encoder.field(":path", path);
    }
    encoder.field(":authority", authority);
    encoder.fields(headers.entries);
    this.countFieldsSent(frames.endFields(this.id, endStream));
    if (isExtended) this.#websocketKey = head.upgrade === "websocket" ? (headers.get(keyField) ?? "") : "";
    if (endStream) this.endSending();
  }

  /** The host has said what it takes. */
  sendHeldHead(): void {
    const head = this.#heldHead;
    if (head === undefined) return;
    this.#heldHead = undefined;
    this.sendRequestHead(head, false);
    // What has come behind it waited as for a window.
    if (!this.isSendOver) this.session.windows.flush(this);
  }

  /** The connection has gone before that. */
  endHeld(reason: StreamResetReason): void {
    if (this.#heldHead === undefined) return;
    this.#heldHead = undefined;
    const receiver = this.#receiver;
    this.resetStream(reason);
    receiver?.onUpstreamReset(reason, false);
  }

  sendRequestData(chunk: Buffer, endStream: boolean): void {
    this.sendData(chunk, endStream);
  }

  sendRequestTrailers(trailers: HeaderMap): void {
    this.sendTrailerFields(trailers);
  }

  resetStream(reason: StreamResetReason): void {
    this.#receiver = undefined;
    if (this.id !== 0) {
      this.reset(reason === "local_reset" ? errorCodes.cancel : errorCodeOf(reason));
      return;
    }
    if (this.isSendOver) return;
    this.isSendOver = true;
    this.isReceiveOver = true;
    this.#heldHead = undefined;
    this.forgetWaiting();
    this.#owner.onUnsentStreamEnd();
  }

  // A host that leaves says which streams it has taken; one that just goes, while nothing comes any more, says nothing.
  mayHaveCrossed(): boolean {
    const received = this.#receivedBefore;
    return this.#isRequestWhole && received > 0 && received === this.#owner.bytesReceived;
  }

  pauseResponse(): void {
    this.pauseReceiving();
  }

  resumeResponse(): void {
    this.resumeReceiving();
  }

  /** False where the section is no head of a response, or one too many. */
  onHead(fields: ResponseFields, endStream: boolean): boolean {
    if (!fields.isSound) return false;
    const { status } = fields;
    const headers = new HeaderMap(fields.entries);
    if (status < 200) {
      this.#informationalCount += 1;
      if (endStream || this.#informationalCount > maxInformationalCount) return false;
      this.#receiver?.onInformational(status, headers);
      return true;
    }
    this.#hasHead = true;
    const hasBody = this.#method !== "HEAD" && status !== 204 && status !== 304;
    // A body where none may be would be taken for the next answer by a client of HTTP/1.1.
    const declared = hasBody ? fields.contentLengthBytes : 0;
    if (declared >= 0) {
      if (endStream && declared > 0) return false;
      this.declareBody(declared);
    }
    const head: ResponseHead = { status, headers };
    if (this.#upgrade !== undefined && status < 300) {
      this.isConnected = true;
      headers.remove("content-length");
      // What a WebSocket's client of HTTP/1.1 waits for (RFC 8441 §5).
      if (this.#upgrade !== "connect") {
        head.status = 101;
        head.upgrade = this.#upgrade;
        if (this.#websocketKey !== "" && !headers.has(acceptField))
          headers.set(acceptField, acceptOfKey(this.#websocketKey));
      }
    }
    if (endStream) this.isReceiveOver = true;
    this.#receiver?.onResponseHead(head, endStream);
    if (endStream) this.closeIfOver();
    return true;
  }

  get hasHead(): boolean {
    return this.#hasHead;
  }

  override countBody(bytes: number, endStream: boolean): boolean {
    // A body before its head is none (RFC 9113 §8.1).
    return this.#hasHead && super.countBody(bytes, endStream);
  }

  onTrailers(trailers: HeaderMap): void {
    this.isReceiveOver = true;
    this.#receiver?.onResponseTrailers(trailers);
    this.closeIfOver();
  }

  protected override receiveData(bytes: Buffer, endStream: boolean): void {
    this.#receiver?.onResponseData(bytes, endStream);
  }

  protected override onDrained(): void {
    this.#receiver?.onUpstreamDrained();
  }

  protected override onReset(reason: StreamResetReason): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    receiver?.onUpstreamReset(reason, this.#owner.bytesSent > this.#position);
  }

  protected override onSendEnd(): void {
    this.#isRequestWhole = true;
  }

  // An answer that does not need the rest of the request is the end of both: the host would keep the stream open.
  override closeIfOver(): void {
    if (this.isReceiveOver && !this.isSendOver) this.reset(errorCodes.cancel);
    else super.closeIfOver();
  }

  protected override onClosed(): void {
    this.#receiver = undefined;
  }
}
