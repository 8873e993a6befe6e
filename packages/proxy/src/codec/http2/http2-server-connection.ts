// The server side of one HTTP/2 connection: requests to the owner, each on a stream of its own, and the ways in which a
// connection ends.
import type { Socket } from "node:net";
import type { DataPath } from "../../worker/data-path.ts";
import { HeaderMap } from "../../http/header-map.ts";
import { LingeringClose } from "../../worker/lingering-close.ts";
import type { ServerCodec, ServerCodecOwner } from "../server-codec.ts";
import { type SilentClient, ServerTimers } from "../server-timers.ts";
import { HttpProtocolError } from "../stream-codec.ts";
import { errorCodes, maxInteger, preface } from "./frame.ts";
import { FrameOutput } from "./frame-output.ts";
import { Http2ServerStream } from "./http2-server-stream.ts";
import { Http2Session, type Http2SessionSettings } from "./http2-session.ts";
import type { SessionOwner } from "./session-owner.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { FieldSection } from "./section-gatherer.ts";
import type { SessionFailure } from "./session-failure.ts";
import { RequestFields, TrailerFields } from "./request-fields.ts";

export interface Http2ServerSettings extends Http2SessionSettings {
  readonly maxFieldCount: number;
  /** 0 = none, as for the other one. */
  readonly idleTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** 0 = the connection goes with the last byte that is written. */
  readonly delayedCloseMs: number;
}

/**
 * - `preface`: the client's first bytes are awaited.
 * - `open`: frames.
 * - `closing`: everything is written; the peer has a moment to read it.
 * - `closed`: the socket is gone.
 */
type State = "preface" | "open" | "closing" | "closed";

const noHeaders = new HeaderMap();

export class Http2ServerConnection implements ServerCodec, SessionOwner, SilentClient {
  readonly protocol = "HTTP/2";
  readonly isServer = true;
  readonly #socket: Socket;
  readonly #owner: ServerCodecOwner;
  readonly #settings: Http2ServerSettings;
  readonly #dataPath: DataPath;
  readonly #output: FrameOutput;
  readonly #session: Http2Session;
  readonly #timers: ServerTimers;
  readonly #request: RequestFields;
  readonly #trailers: TrailerFields;
  #state: State = "preface";
  #prefaceBytes = 0;
  /** Of the last head that did not come in one frame; 0 = none has. */
  #headStreamId = 0;
  /** GOAWAY has been written: no further streams. */
  #isLeaving = false;
  #isDraining = false;
  #ending: LingeringClose | undefined = undefined;
  bytesReceived = 0;

  constructor(socket: Socket, owner: ServerCodecOwner, settings: Http2ServerSettings, dataPath: DataPath) {
    this.#socket = socket;
    this.#owner = owner;
    this.#settings = settings;
    this.#dataPath = dataPath;
    this.#output = new FrameOutput(socket, dataPath, settings.bufferLimitBytes, () => this.#session.onDrained());
    this.#session = new Http2Session(this, this.#output, settings, dataPath);
    this.#request = new RequestFields(settings);
    this.#trailers = new TrailerFields(settings);
    this.#timers = new ServerTimers(this, settings.idleTimeoutMs, settings.headersTimeoutMs, dataPath);
    this.#timers.beginHead();
    socket.on("end", () => this.#onEnd());
    // The reason does not matter to HTTP: `close` follows in every case.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#onClose());
    this.#session.start(settings.maxHeadBytes);
  }

  get bytesSent(): number {
    return this.#output.bytesSent;
  }

  onData(data: Buffer): void {
    this.bytesReceived += data.length;
    const { turn } = this.#dataPath;
    turn.begin();
    try {
      let start = 0;
      if (this.#state === "preface") {
        start = this.#takePreface(data);
        if (start < 0) return;
      }
      if (this.#state === "open") this.#session.read(data, start);
    } finally {
      turn.end();
    }
  }

  /** The position behind the preface; -1 where it is not whole yet, or none. */
  #takePreface(data: Buffer): number {
    let at = 0;
    for (; at < data.length && this.#prefaceBytes < preface.length; at += 1) {
      if (data[at] !== preface.charCodeAt(this.#prefaceBytes)) {
        this.#session.fail(errorCodes.protocolError, "no connection preface");
        return -1;
      }
      this.#prefaceBytes += 1;
    }
    if (this.#prefaceBytes < preface.length) return -1;
    this.#state = "open";
    this.#timers.endHead();
    return at;
  }

  // --- requests

  onFieldSection(streamId: number, stream: Http2Stream | undefined, section: FieldSection): void {
    // §5.1.1: a client's streams are odd.
    if ((streamId & 1) === 0) {
      this.#session.fail(errorCodes.protocolError, "a client's stream with an even number");
      return;
    }
    if (streamId > this.#session.streams.lastPeerId) this.#beginRequest(streamId, section);
    else this.#takeTrailers(streamId, stream as Http2ServerStream | undefined, section);
  }

  #beginRequest(streamId: number, section: FieldSection): void {
    const session = this.#session;
    if (session.isFlooded()) return;
    const isFirst = session.streams.lastPeerId === 0;
    const fields = this.#request;
    fields.begin();
    if (!session.decoder.decode(section.bytes, section.start, section.end, fields)) {
      session.fail(errorCodes.compressionError, "a field section that cannot be decoded");
      return;
    }
    if (this.#isLeaving) {
      // Behind what GOAWAY said: it is sent again on another connection.
      session.streams.lastPeerId = streamId;
      return;
    }
    const head = fields.isTooLarge ? undefined : fields.head(session.options.allowConnect);
    const stream = new Http2ServerStream(streamId, session, head);
    session.add(stream);
    if (isFirst && this.#isDraining) this.#askToLeave();
    stream.isReceiveOver = section.endStream;
    stream.countFieldsReceived(section.wireBytes, fields.textBytes);
    if (session.streams.size > session.options.maxConcurrentStreams) {
      stream.reset(errorCodes.refusedStream);
      return;
    }
    if (fields.isTooLarge) {
      session.stats.headersOverflow.increment();
      const details = fields.hasTooMany ? "http2.too_many_headers" : "http2.too_large_headers";
      this.#owner.onConnectionError(stream, new HttpProtocolError(431, details));
      return;
    }
    const declared = fields.contentLengthBytes;
    if (declared >= 0) stream.declareBody(declared);
    if (head === undefined || (section.endStream && declared > 0)) {
      session.streamError(stream, errorCodes.protocolError);
      return;
    }
    this.#timers.quietSinceMs = session.nowMs;
    const receiver = this.#owner.newStream(stream);
    stream.receiver = receiver;
    const isTunnel = head.upgrade !== undefined;
    receiver.onRequestHead(head, section.endStream && !isTunnel);
    if (section.endStream && isTunnel) receiver.onRequestData(noBytes, true);
    // As over HTTP/1.1, the proxy itself invites the body, unless the request has been answered already.
    if (fields.expectsContinue && !section.endStream && stream.isUnanswered) stream.sendInformational(100, noHeaders);
  }

  #takeTrailers(streamId: number, stream: Http2ServerStream | undefined, section: FieldSection): void {
    const session = this.#session;
    const fields = this.#trailers;
    fields.begin();
    if (!session.decoder.decode(section.bytes, section.start, section.end, fields)) {
      session.fail(errorCodes.compressionError, "a field section that cannot be decoded");
      return;
    }
    if (stream === undefined && !session.streams.mayHaveBeenReset(streamId)) {
      // §5.1.1: it was passed over, or is over on both sides.
      session.fail(errorCodes.protocolError, "HEADERS of a stream that is not");
      return;
    }
    if (session.refusesSection(streamId, stream)) return;
    stream!.countFieldsReceived(section.wireBytes, fields.textBytes);
    session.stats.trailers.increment();
    const isSound = section.endStream && fields.fault === "" && !fields.isTooLarge && !stream!.isConnect;
    if (!isSound || !stream!.countBody(0, true)) {
      session.streamError(stream!, errorCodes.protocolError);
      return;
    }
    stream!.onTrailers(new HeaderMap(fields.entries));
  }

  onStreamClosed(): void {
    this.#timers.quietSinceMs = this.#session.nowMs;
    this.#owner.onStreamEnd();
    if (this.#isLeaving && this.#session.streams.size === 0) this.close();
  }

  // --- the end

  drain(): void {
    if (this.#isDraining || this.#state === "closing" || this.#state === "closed") return;
    this.#isDraining = true;
    // Who has only just connected is about to ask. Clients that are told to leave before they have fail that call.
    if (this.#session.streams.lastPeerId > 0) this.#askToLeave();
  }

  #askToLeave(): void {
    // What is under way to us is answered still: the client learns first that it shall open no more, and when it has,
    // which was the last (§6.8).
    this.#session.frames.goAway(maxInteger, errorCodes.noError);
    this.#session.ping(() => this.#leave());
  }

  #leave(): void {
    if (this.#isLeaving || this.#state === "closing" || this.#state === "closed") return;
    this.#isLeaving = true;
    this.#isDraining = true;
    this.#session.frames.goAway(this.#session.streams.lastPeerId, errorCodes.noError);
    if (this.#session.streams.size === 0) this.close();
  }

  closeWhenAnswered(): void {
    this.#leave();
  }

  close(): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    if (!this.#isLeaving && !this.#session.isOver) {
      this.#session.frames.goAway(this.#session.streams.lastPeerId, errorCodes.noError);
    }
    this.#state = "closing";
    this.#session.stop();
    this.#timers.endHead();
    this.#session.streams.end("connection_termination");
    this.#ending = new LingeringClose(this.#socket, this.#output, this.#dataPath, this.#settings, this.#owner);
    this.#socket.resume();
  }

  destroy(): void {
    this.#output.flush();
    this.#socket.destroy();
  }

  onFailure(failure: SessionFailure): void {
    this.#owner.onConnectionFailure?.(failure.flood ?? failure.what);
    this.#dataPath.turn.run(() => this.close());
  }

  onSilence(): void {
    this.#dataPath.turn.run(() => this.#session.streams.end("connection_timeout"));
    this.destroy();
  }

  onGoAway(): void {
    // A client that leaves opens no further streams; those that are open are answered.
    if (this.#session.streams.size === 0) this.close();
  }

  onPeerSettings(): void {
    // Nothing waits for them.
  }

  onHeadBegin(streamId: number): void {
    this.#headStreamId = streamId;
    this.#timers.beginHead();
  }

  onHeadEnd(): void {
    this.#timers.endHead();
  }

  #onEnd(): void {
    // HTTP/2 knows no half-closed connections: nothing can be asked or credited any more.
    this.destroy();
  }

  #onClose(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#session.stop();
    this.#timers.stop();
    this.#ending?.cancel();
    this.#dataPath.turn.run(() => {
      this.#session.streams.end("connection_termination");
      this.#owner.onConnectionClosed();
    });
  }

  get isBetweenRequests(): boolean {
    return this.#session.streams.size === 0;
  }

  onIdleTimeout(): void {
    this.#owner.onConnectionIdle();
    this.close();
  }

  onHeadTimeout(): void {
    this.#dataPath.turn.run(() => {
      this.#refuseHalfHead();
      // Nothing else may come before the head's end (§6.10).
      this.#session.fail(errorCodes.enhanceYourCalm, "a head that does not come to its end");
    });
  }

  /** Nobody is told where it is no request's, or one that nobody takes. */
  #refuseHalfHead(): void {
    const session = this.#session;
    const streamId = this.#headStreamId;
    if ((streamId & 1) === 0 || streamId <= session.streams.lastPeerId || this.#isLeaving) return;
    const stream = new Http2ServerStream(streamId, session, undefined);
    session.add(stream);
    this.#owner.onConnectionError(stream, new HttpProtocolError(408, "request_header_timeout"));
  }
}

const noBytes: Buffer = Buffer.alloc(0);
