// What the peer has said of itself in its SETTINGS (RFC 9113 §6.5).
import { defaultMaxFrameBytes, defaultWindowBytes, errorCodes, maxInteger, settingIds } from "./frame.ts";
import type { HpackEncoder } from "./hpack/hpack-encoder.ts";
import type { SessionFailure } from "./session-failure.ts";

export class PeerSettings {
  /** Of new streams. */
  streamWindowBytes = defaultWindowBytes;
  maxStreams = Number.POSITIVE_INFINITY;
  /** Extended CONNECT (RFC 8441). */
  allowsConnect = false;
  readonly #encoder: HpackEncoder;
  #windowChangeBytes = 0;

  constructor(encoder: HpackEncoder) {
    this.#encoder = encoder;
  }

  /** Pairs of number and value, whole; undefined where none is one that §6.5.2 forbids. */
  take(bytes: Buffer, start: number, end: number, isServer: boolean): SessionFailure | undefined {
    for (let at = start; at < end; at += 6) {
      const failure = this.#takeOne(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2), isServer);
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** By how much windows of open streams change with what was taken (§6.9.2); they may fall below nothing. */
  takeWindowChange(): number {
    const change = this.#windowChangeBytes;
    this.#windowChangeBytes = 0;
    return change;
  }

  #takeOne(id: number, value: number, isServer: boolean): SessionFailure | undefined {
    switch (id) {
      case settingIds.headerTableSize:
        // Each of several in one frame: the least has to be told (RFC 7541 §4.2).
        this.#encoder.setPeerLimit(value);
        return undefined;
      case settingIds.enablePush:
        return value > 1 || (value === 1 && !isServer) ? forbidden("ENABLE_PUSH") : undefined;
      case settingIds.maxConcurrentStreams:
        this.maxStreams = value;
        return undefined;
      case settingIds.initialWindowSize:
        if (value > maxInteger) return forbidden("INITIAL_WINDOW_SIZE", errorCodes.flowControlError);
        this.#windowChangeBytes += value - this.streamWindowBytes;
        this.streamWindowBytes = value;
        return undefined;
      case settingIds.maxFrameSize:
        // Larger frames than the least bring nothing and keep others waiting.
        return value < defaultMaxFrameBytes || value > 0xff_ffff ? forbidden("MAX_FRAME_SIZE") : undefined;
      case settingIds.enableConnectProtocol:
        if (value > 1 || (value === 0 && this.allowsConnect)) return forbidden("ENABLE_CONNECT_PROTOCOL");
        this.allowsConnect = value === 1;
        return undefined;
      default:
        return undefined;
    }
  }
}

function forbidden(name: string, errorCode: number = errorCodes.protocolError): SessionFailure {
  return { errorCode, what: `SETTINGS_${name}`, flood: undefined };
}
