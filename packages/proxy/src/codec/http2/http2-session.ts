// One HTTP/2 connection, whichever end we are: frames in, their order and their limits, settings, pings and the way to
// the end (RFC 9113). What a field section means is for the two ends to say.
import type { DataPath } from "../../worker/data-path.ts";
import { ConnectionWindows } from "./connection-windows.ts";
import { type Flood, FloodGuard } from "./flood-guard.ts";
import { errorCodes, frameFlags, frameHeaderBytes, frameTypes, maxInteger } from "./frame.ts";
import type { FrameOutput } from "./frame-output.ts";
import { FrameWriter } from "./frame-writer.ts";
import { FrameReader, type FrameSink } from "./frame-reader.ts";
import { HpackDecoder } from "./hpack/hpack-decoder.ts";
import type { Http2Options } from "./http2-options.ts";
import type { Http2Stats } from "./http2-stats.ts";
import { KeepAlive, type PingedConnection } from "./keep-alive.ts";
import type { Http2Stream } from "./http2-stream.ts";
import { PeerSettings } from "./peer-settings.ts";
import { type FieldSection, SectionGatherer, type SectionSink } from "./section-gatherer.ts";
import type { SessionFailure } from "./session-failure.ts";
import type { SessionOwner } from "./session-owner.ts";
import { StreamTable } from "./stream-table.ts";

/** What a connection brings for it. */
export interface Http2SessionSettings {
  readonly http2: Http2Options;
  readonly http2Stats: () => Http2Stats;
  readonly bufferLimitBytes: number;
  readonly maxHeadBytes: number;
}

export class Http2Session implements FrameSink, SectionSink, PingedConnection {
  readonly options: Http2Options;
  readonly bufferLimitBytes: number;
  readonly decoder: HpackDecoder;
  readonly frames: FrameWriter;
  readonly #owner: SessionOwner;
  readonly #dataPath: DataPath;
  readonly #reader = new FrameReader(this);
  readonly #floods: FloodGuard;
  readonly stats: Http2Stats;
  #keepAlive: KeepAlive | undefined;
  readonly #sections: SectionGatherer;
  readonly windows: ConnectionWindows;
  readonly streams: StreamTable<Http2Stream>;

  isOver = false;
  #hasPeerSettings = false;

  readonly peer: PeerSettings;

  // The DATA frame that is being read.
  #dataStream: Http2Stream | undefined = undefined;
  #dataEndsStream = false;

  /** Whom the peer's answers are for, in the order of the pings. */
  readonly #pings: (() => void)[] = [];

  constructor(
    owner: SessionOwner,
    output: FrameOutput,
    { http2: options, ...settings }: Http2SessionSettings,
    dataPath: DataPath,
  ) {
    this.#owner = owner;
    this.options = options;
    this.stats = settings.http2Stats();
    this.frames = new FrameWriter(output, this.stats);
    this.peer = new PeerSettings(this.frames.encoder);
    this.bufferLimitBytes = settings.bufferLimitBytes;
    this.#dataPath = dataPath;
    this.decoder = new HpackDecoder(options.headerTableBytes);
    this.#floods = new FloodGuard(options);
    this.streams = new StreamTable(owner.isServer);
    // What is encoded is hardly ever longer than what it says; beyond it nothing is gathered.
    this.#sections = new SectionGatherer(this, this.#floods, settings.maxHeadBytes * 2);
    this.windows = new ConnectionWindows(
      output,
      this.frames,
      this.#floods,
      options.initialConnectionWindowBytes,
      () => this.isOver,
    );
  }

  get bytesReceived(): number {
    return this.#owner.bytesReceived;
  }

  onSilence(): void {
    this.stats.keepAliveTimeouts.increment();
    this.#owner.onSilence();
  }

  /** Our first frames. */
  start(maxFieldListBytes: number): void {
    const { options } = this;
    this.frames.settings(options, this.#owner.isServer, maxFieldListBytes);
    this.windows.start();
    if (options.keepAlive !== undefined) this.#keepAlive = new KeepAlive(this, options.keepAlive, this.#dataPath);
  }

  get nowMs(): number {
    return this.#dataPath.turn.nowMs;
  }

  /** `bytes` is a view that is valid during the call. */
  read(bytes: Buffer, start: number): void {
    this.#reader.read(bytes, start);
  }

  // --- streams

  add(stream: Http2Stream): void {
    stream.sendWindowBytes = this.peer.streamWindowBytes;
    this.streams.add(stream);
    this.#floods.streamOpened();
  }

  /** A request has come while our answers are not taken: true where too many wait, and the connection has ended. */
  isFlooded(): boolean {
    return this.#flood(this.#floods.heads(this.frames.waitingHeads));
  }

  /** False where it was forgotten before. */
  forget(stream: Http2Stream): boolean {
    if (!this.streams.delete(stream)) return false;
    this.windows.forget(stream);
    if (this.#dataStream === stream) this.#dataStream = undefined;
    this.#owner.onStreamClosed();
    return true;
  }

  // --- frames of the peer

  onBrokenFrame(errorCode: number, what: string): void {
    this.fail(errorCode, what);
  }

  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (!this.#hasPeerSettings && (type !== frameTypes.settings || (flags & frameFlags.ack) !== 0)) {
      // §3.4: it is the first frame of either side.
      this.fail(errorCodes.protocolError, "the first frame is not SETTINGS");
      return;
    }
    // §6.10: nothing may come between the frames of a field section.
    const open = this.#sections.streamId;
    if (open !== 0 && (type !== frameTypes.continuation || streamId !== open)) {
      this.fail(errorCodes.protocolError, "another frame within a field section");
      return;
    }
    switch (type) {
      case frameTypes.headers:
        this.#failIf(this.#sections.headers(flags, streamId, bytes, start, end));
        break;
      case frameTypes.continuation:
        this.#failIf(this.#sections.continuation(flags, streamId, bytes, start, end));
        break;
      case frameTypes.priority:
        this.#onPriority(streamId, bytes, start, end);
        break;
      case frameTypes.rstStream:
        this.#onRstStream(streamId, bytes, start, end);
        break;
      case frameTypes.settings:
        this.#onSettings(flags, streamId, bytes, start, end);
        break;
      case frameTypes.pushPromise:
        // We have said that we take none, or are the server (§8.4).
        this.fail(errorCodes.protocolError, "PUSH_PROMISE");
        break;
      case frameTypes.ping:
        this.#takePing(flags, streamId, bytes, start, end);
        break;
      case frameTypes.goAway:
        this.#onGoAway(streamId, bytes, start, end);
        break;
      case frameTypes.windowUpdate:
        this.#onWindowUpdate(streamId, bytes, start, end);
        break;
      default:
        // §5.5: unknown ones are passed over; as a flood they would cost something all the same.
        if (start === end) this.#flood(this.#floods.emptyFrame());
    }
  }

  onDataFrame(streamId: number, payloadBytes: number, dataBytes: number, endStream: boolean): void {
    this.#dataStream = undefined;
    if (!this.#hasPeerSettings || this.#sections.streamId !== 0 || streamId === 0 || this.streams.isIdle(streamId)) {
      this.fail(errorCodes.protocolError, "DATA where none may be");
      return;
    }
    const stream = this.streams.get(streamId);
    if (dataBytes > 0 || endStream) {
      this.#floods.fullFrame();
      if (stream !== undefined) stream.emptyFrames = 0;
    } else if (this.#flood(this.#floods.emptyData(stream, this.nowMs))) return;
    if (!this.windows.take(payloadBytes)) {
      this.fail(errorCodes.flowControlError, "more data than the connection's window");
      return;
    }
    const paddingBytes = payloadBytes - dataBytes;
    this.#dataEndsStream = endStream;
    if (stream === undefined || stream.isReceiveOver) {
      if (paddingBytes > 0) this.windows.credit(paddingBytes);
      if (!this.streams.wasReset(streamId)) this.#refuseClosed(streamId, stream);
      return;
    }
    if (payloadBytes > stream.receiveWindowBytes) {
      if (paddingBytes > 0) this.windows.credit(paddingBytes);
      this.streamError(stream, errorCodes.flowControlError);
      return;
    }
    stream.receiveWindowBytes -= payloadBytes;
    stream.wireBytesReceived += payloadBytes + frameHeaderBytes;
    if (paddingBytes > 0) stream.creditBytes(paddingBytes);
    if (!stream.countBody(dataBytes, endStream)) {
      this.streamError(stream, errorCodes.protocolError);
      return;
    }
    this.#dataStream = stream;
  }

  onData(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const stream = this.#dataStream;
    if (stream === undefined) this.windows.credit(end - start);
    else stream.onData(bytes, start, end, isLast && this.#dataEndsStream);
  }

  onSection(streamId: number, section: FieldSection): void {
    this.#owner.onFieldSection(streamId, this.streams.get(streamId), section);
  }

  onTooLong(): void {
    this.stats.headersOverflow.increment();
  }

  onHeadBegin(streamId: number): void {
    this.#owner.onHeadBegin(streamId);
  }

  onHeadEnd(): void {
    this.#owner.onHeadEnd();
  }

  #onPriority(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId === 0) this.fail(errorCodes.protocolError, "PRIORITY on stream 0");
    else if (end - start !== 5) this.#streamErrorById(streamId, errorCodes.frameSizeError);
    else if ((bytes.readUInt32BE(start) & maxInteger) === streamId) {
      this.#streamErrorById(streamId, errorCodes.protocolError);
    } else this.#flood(this.#floods.priorityFrame());
  }

  #onRstStream(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) this.fail(errorCodes.frameSizeError, "RST_STREAM of another size than 4");
    else if (streamId === 0 || this.streams.isIdle(streamId)) {
      this.fail(errorCodes.protocolError, "RST_STREAM of a stream that is not");
    } else {
      this.stats.resetsReceived.increment();
      const stream = this.streams.get(streamId);
      if (stream === undefined) return;
      stream.endByReset(bytes.readUInt32BE(start), this.#owner.isServer);
      if (this.#owner.isServer) this.#flood(this.#floods.reset(this.nowMs));
    }
  }

  #onSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    const isAck = (flags & frameFlags.ack) !== 0;
    if (streamId !== 0) return this.fail(errorCodes.protocolError, "SETTINGS on a stream");
    const isSized = isAck ? end === start : (end - start) % 6 === 0;
    if (!isSized) return this.fail(errorCodes.frameSizeError, "SETTINGS of a wrong size");
    if (isAck) {
      // We send them once.
      this.decoder.setLimit(this.options.headerTableBytes);
      return;
    }
    this.#failIf(this.peer.take(bytes, start, end, this.#owner.isServer));
    if (this.isOver) return;
    const change = this.peer.takeWindowChange();
    // Each costs us a look at every stream.
    if (change !== 0 && this.#flood(this.#floods.windowChange(this.nowMs))) return;
    if (!this.streams.widen(change))
      return this.fail(errorCodes.flowControlError, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large");
    this.#hasPeerSettings = true;
    if (this.#flood(this.#floods.controlFrames(this.frames.settingsAck()))) return;
    this.#owner.onPeerSettings();
    if (change <= 0) return;
    for (const stream of this.streams.all()) if (stream.isWaiting && !this.isOver) this.windows.flush(stream);
  }

  #takePing(flags: number, streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId !== 0) this.fail(errorCodes.protocolError, "PING on a stream");
    else if (end - start !== 8) this.fail(errorCodes.frameSizeError, "PING of another size than 8");
    else if ((flags & frameFlags.ack) === 0) {
      this.#flood(this.#floods.controlFrames(this.frames.pingAck(bytes, start)));
    } else {
      // One that we did not send is none of ours.
      this.#pings.shift()?.();
    }
  }

  #onGoAway(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (streamId !== 0) this.fail(errorCodes.protocolError, "GOAWAY on a stream");
    else if (end - start < 8) this.fail(errorCodes.frameSizeError, "GOAWAY of less than 8 bytes");
    else this.#owner.onGoAway(bytes.readUInt32BE(start) & maxInteger, bytes.readUInt32BE(start + 4));
  }

  #onWindowUpdate(streamId: number, bytes: Buffer, start: number, end: number): void {
    if (end - start !== 4) return this.fail(errorCodes.frameSizeError, "WINDOW_UPDATE of another size than 4");
    if (streamId !== 0 && this.streams.isIdle(streamId))
      return this.fail(errorCodes.protocolError, "WINDOW_UPDATE of a stream that is not");
    if (this.#flood(this.#floods.windowUpdate())) return;
    const bytesMore = bytes.readUInt32BE(start) & maxInteger;
    const stream = streamId === 0 ? undefined : this.streams.get(streamId);
    if (streamId === 0) {
      if (bytesMore === 0) this.fail(errorCodes.protocolError, "WINDOW_UPDATE of nothing");
      else if (!this.windows.widen(bytesMore)) this.fail(errorCodes.flowControlError, "a window too large");
      else this.windows.takeTurns();
    } else if (stream !== undefined) {
      stream.sendWindowBytes += bytesMore;
      if (bytesMore === 0) this.streamError(stream, errorCodes.protocolError);
      else if (stream.sendWindowBytes > maxInteger) this.streamError(stream, errorCodes.flowControlError);
      else if (stream.isWaiting) this.windows.flush(stream);
    }
  }

  // --- errors

  /** Of a stream that is over on the peer's side (§5.1). */
  #refuseClosed(streamId: number, stream: Http2Stream | undefined): void {
    if (stream === undefined) this.#streamErrorById(streamId, errorCodes.streamClosed);
    else this.streamError(stream, errorCodes.streamClosed);
  }

  /** The same for a field section: true where it has been dealt with. */
  refusesSection(streamId: number, stream: Http2Stream | undefined): boolean {
    if (stream !== undefined && !stream.isReceiveOver) return false;
    if (!this.streams.wasReset(streamId)) this.#refuseClosed(streamId, stream);
    return true;
  }

  #streamErrorById(streamId: number, errorCode: number): void {
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.streamError(stream, errorCode);
    else this.writeReset(streamId, errorCode);
    if (stream === undefined) this.#flood(this.#floods.reset(this.nowMs));
  }

  /** The peer broke the protocol on one stream: it ends, the connection goes on (§5.4.2). */
  streamError(stream: Http2Stream, errorCode: number): void {
    this.stats.messagingErrors.increment();
    stream.writeReset(errorCode);
    stream.end("protocol_error");
    if (this.#owner.isServer) this.#flood(this.#floods.reset(this.nowMs));
  }

  /** True where it is one, and the connection has ended. */
  #flood(flood: Flood | undefined): boolean {
    if (flood === undefined) return false;
    this.#failIf({ errorCode: errorCodes.enhanceYourCalm, what: flood, flood });
    return true;
  }

  /** Ends the connection for what the peer did (§5.4.1). */
  fail(errorCode: number, what: string): void {
    this.#failIf({ errorCode, what, flood: undefined });
  }

  #failIf(failure: SessionFailure | undefined): void {
    if (failure === undefined || this.isOver) return;
    if (failure.flood !== undefined) this.stats[failure.flood].increment();
    this.stop();
    this.frames.goAway(this.streams.lastPeerId, failure.errorCode);
    this.#owner.onFailure(failure);
  }

  /** Nothing is read any more. */
  stop(): void {
    this.isOver = true;
    this.#reader.stop();
    this.#keepAlive?.stop();
  }

  // --- what we write

  writeReset(streamId: number, errorCode: number): void {
    this.stats.resetsSent.increment();
    this.streams.rememberReset(streamId);
    this.#flood(this.#floods.controlFrames(this.frames.reset(streamId, errorCode)));
  }

  /** `onAnswer` when the peer has taken everything that was written before. */
  ping(onAnswer: () => void): void {
    this.#pings.push(onAnswer);
    this.frames.ping();
  }

  /** The socket has taken what was written. */
  onDrained(): void {
    this.frames.onDrained();
    this.windows.onDrained();
  }
}
