// The client side of one HTTP/2 connection to an upstream host: many requests at once. The pool owns it and learns when
// it can take more.
import type { Socket } from "node:net";
import { HeaderMap } from "../../http/header-map.ts";
import { ipPortText } from "../../http/ip-port-text.ts";
import { readyEventOf } from "../../tls/ready-event.ts";
import type { UpstreamTlsInfo } from "../../tls/tls-info.ts";
import type { DataPath } from "../../worker/data-path.ts";
import type { ClientCodec, ClientCodecOwner } from "../client-codec.ts";
import type { RequestSender, ResponseReceiver } from "../stream-codec.ts";
import { errorCodes, maxInteger } from "./frame.ts";
import { FrameOutput } from "./frame-output.ts";
import { Http2ClientStream, type ClientStreamOwner } from "./http2-client-stream.ts";
import { Http2Session, type Http2SessionSettings } from "./http2-session.ts";
import type { SessionFailure } from "./session-failure.ts";
import type { SessionOwner } from "./session-owner.ts";
import type { Http2Stream } from "./http2-stream.ts";
import type { FieldSection } from "./section-gatherer.ts";
import { TrailerFields } from "./request-fields.ts";
import { ResponseFields } from "./response-fields.ts";

export interface Http2ClientSettings extends Http2SessionSettings {
  /** Streams until the host has said how many it takes. */
  readonly streamsBeforeSettings: number;
  readonly maxFieldCount: number;
}

/** Of a host that nothing is known of: what is recommended at the least (RFC 9113 §6.5.2). */
export const streamsOfUnknownHost = 100;

/**
 * - `connecting`: the socket is not up yet.
 * - `open`: takes streams.
 * - `leaving`: the host takes no more, or the numbers are used up; it ends with the last that it has.
 * - `closed`: of no more use.
 */
type State = "connecting" | "open" | "leaving" | "closed";

export class Http2ClientConnection implements ClientCodec, SessionOwner, ClientStreamOwner {
  readonly protocol = "HTTP/2";
  readonly isServer = false;
  readonly #socket: Socket;
  readonly #owner: ClientCodecOwner;
  readonly #settings: Http2ClientSettings;
  readonly #dataPath: DataPath;
  readonly #output: FrameOutput;
  readonly #session: Http2Session;
  readonly #response: ResponseFields;
  readonly #trailers: TrailerFields;
  #state: State = "connecting";
  /** Opened, and their heads not written yet. */
  #unsentStreams = 0;
  #nextId = 1;
  #hasSettings = false;
  /** Whose heads wait for the host's SETTINGS. */
  #held: Http2ClientStream[] = [];
  #error: NodeJS.ErrnoException | undefined = undefined;
  bytesReceived = 0;

  /** `socket` is being connected; whoever made it feeds what it reads to `onData`. */
  constructor(socket: Socket, owner: ClientCodecOwner, settings: Http2ClientSettings, dataPath: DataPath) {
    this.#socket = socket;
    this.#owner = owner;
    this.#settings = settings;
    this.#dataPath = dataPath;
    this.#output = new FrameOutput(socket, dataPath, settings.bufferLimitBytes, () => this.#session.onDrained());
    this.#session = new Http2Session(this, this.#output, settings, dataPath);
    this.#response = new ResponseFields(settings);
    this.#trailers = new TrailerFields(settings);
    socket.on(readyEventOf(socket), (tls?: UpstreamTlsInfo) => this.#onConnect(tls));
    socket.on("end", () => this.#onEnd());
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#error = error;
    });
    socket.on("close", () => this.#onClose());
  }

  get bytesSent(): number {
    return this.#output.bytesSent;
  }

  get position(): number {
    return this.#output.position;
  }

  get localAddress(): string | undefined {
    const { localAddress, localPort } = this.#socket;
    return localAddress === undefined ? undefined : ipPortText(localAddress, localPort ?? 0);
  }

  get capacity(): number {
    if (this.#state !== "open" || this.#socket.destroyed) return 0;
    return Math.max(0, this.#streamLimit - this.#session.streams.size - this.#unsentStreams);
  }

  get #streamLimit(): number {
    const { http2, streamsBeforeSettings } = this.#settings;
    const peerMost = this.#hasSettings ? this.#session.peer.maxStreams : streamsBeforeSettings;
    return Math.min(peerMost, http2.maxConcurrentStreams);
  }

  open(receiver: ResponseReceiver): RequestSender {
    if (this.capacity === 0) throw new Error(`a request on a connection that is ${this.#state}`);
    this.#unsentStreams += 1;
    return new Http2ClientStream(this.#session, receiver, this);
  }

  takeStreamId(): number {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#unsentStreams -= 1;
    if (this.#nextId > maxInteger) this.#state = "leaving";
    return id;
  }

  onUnsentStreamEnd(): void {
    this.#unsentStreams -= 1;
    this.onStreamClosed();
  }

  holdsUntilSettings(stream: Http2ClientStream): boolean {
    if (this.#hasSettings) return false;
    this.#held.push(stream);
    return true;
  }

  destroy(): void {
    this.#output.flush();
    this.#socket.destroy();
  }

  #onConnect(tls: UpstreamTlsInfo | undefined): void {
    this.#state = "open";
    this.#dataPath.turn.run(() => {
      this.#session.frames.preface();
      this.#session.start(this.#settings.maxHeadBytes);
      this.#owner.onConnected(tls);
    });
  }

  onData(data: Buffer): void {
    this.bytesReceived += data.length;
    const { turn } = this.#dataPath;
    turn.begin();
    try {
      this.#session.read(data, 0);
    } finally {
      turn.end();
    }
  }

  onFieldSection(streamId: number, stream: Http2Stream | undefined, section: FieldSection): void {
    const session = this.#session;
    const client = stream as Http2ClientStream | undefined;
    const isTrailers = client?.hasHead === true;
    const fields = isTrailers ? this.#trailers : this.#response;
    fields.begin();
    if (!session.decoder.decode(section.bytes, section.start, section.end, fields)) {
      session.fail(errorCodes.compressionError, "a field section that cannot be decoded");
      return;
    }
    if (streamId >= this.#nextId || (streamId & 1) === 0) {
      session.fail(errorCodes.protocolError, "HEADERS of a stream that is not");
      return;
    }
    if (session.refusesSection(streamId, client)) return;
    client!.countFieldsReceived(section.wireBytes, fields.textBytes);
    const isSound = isTrailers
      ? this.#takeTrailers(client, section.endStream)
      : client!.onHead(this.#response, section.endStream);
    if (!isSound && !client!.isReceiveOver) session.streamError(client!, errorCodes.protocolError);
  }

  #takeTrailers(stream: Http2ClientStream, endStream: boolean): boolean {
    const fields = this.#trailers;
    this.#session.stats.trailers.increment();
    if (!endStream || fields.fault !== "" || fields.isTooLarge || stream.isConnected) return false;
    if (!stream.countBody(0, true)) return false;
    stream.onTrailers(new HeaderMap(fields.entries));
    return true;
  }

  onStreamClosed(): void {
    if (this.#state === "closed") return;
    const isLast = this.#session.streams.size + this.#unsentStreams === 0;
    const isReusable = this.#state === "open" && !this.#session.isOver;
    this.#owner.onStreamEnd(isReusable);
    if (!isReusable && isLast) this.destroy();
  }

  onGoAway(lastStreamId: number, errorCode: number): void {
    if (this.#state === "open") this.#state = "leaving";
    // What lies behind was not looked at, and may be sent again (§6.8).
    this.#session.streams.end("remote_refused_stream_reset", lastStreamId);
    this.#owner.onGoAway?.(errorCode);
    if (this.#session.streams.size + this.#unsentStreams === 0) this.destroy();
  }

  onPeerSettings(): void {
    this.#hasSettings = true;
    for (const stream of this.#held.splice(0)) stream.sendHeldHead();
    this.#owner.onStreamLimit(this.#streamLimit);
  }

  onHeadBegin(): void {
    // The time-outs of requests cover it.
  }

  onHeadEnd(): void {
    // As above.
  }

  onSilence(): void {
    this.#owner.onSilence?.();
    this.destroy();
  }

  onFailure({ flood, what }: SessionFailure): void {
    this.#owner.onConnectionFailure?.(flood ?? what);
    this.#session.streams.end("protocol_error");
    this.destroy();
  }

  // The host takes nothing any more: what waits is another one's.
  #onEnd(): void {
    this.#socket.destroy();
    if (this.#state !== "connecting") this.#onClose();
  }

  #onClose(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#session.stop();
    this.#dataPath.turn.run(() => {
      this.#session.streams.end("connection_termination");
      for (const stream of this.#held.splice(0)) stream.endHeld("connection_termination");
      this.#owner.onClosed(this.#error);
    });
  }
}
