// Frames of HTTP/2 (RFC 9113 §4, §6): their numbers, and those that we write, as latin1 text that leaves with the heads
// and bodies of its turn.

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const frameFlags = {
  endStream: 0x1,
  ack: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const;

/** §7. */
export const errorCodes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const;

export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  /** RFC 8441. */
  enableConnectProtocol: 8,
} as const;

/** What a client sends first (§3.4). */
export const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export const frameHeaderBytes = 9;
/** The largest payload unless SETTINGS_MAX_FRAME_SIZE says otherwise; ours never does (§4.2). */
export const defaultMaxFrameBytes = 16_384;
export const defaultWindowBytes = 65_535;
/** Of windows and stream ids (§6.9.1, §5.1.1). */
export const maxInteger = 0x7fff_ffff;

const characters = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));

function uint32(value: number): string {
  return (
    characters[value >>> 24]! +
    characters[(value >>> 16) & 0xff]! +
    characters[(value >>> 8) & 0xff]! +
    characters[value & 0xff]!
  );
}

/** `length` is that of the payload. */
export function frameHeader(length: number, type: number, flags: number, streamId: number): string {
  return (
    characters[length >>> 16]! +
    characters[(length >>> 8) & 0xff]! +
    characters[length & 0xff]! +
    characters[type]! +
    characters[flags]! +
    uint32(streamId)
  );
}

/** The same into a buffer. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  target[at] = length >>> 16;
  target[at + 1] = length >>> 8;
  target[at + 2] = length;
  target[at + 3] = type;
  target[at + 4] = flags;
  target[at + 5] = streamId >>> 24;
  target[at + 6] = streamId >>> 16;
  target[at + 7] = streamId >>> 8;
  target[at + 8] = streamId;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): string {
  let text = frameHeader(settings.length * 6, frameTypes.settings, 0, 0);
  for (const [id, value] of settings) text += characters[id >>> 8]! + characters[id & 0xff]! + uint32(value);
  return text;
}

export const settingsAck = frameHeader(0, frameTypes.settings, frameFlags.ack, 0);

/** `data` are 8 latin1 characters. */
export function pingFrame(data: string, isAck: boolean): string {
  return frameHeader(8, frameTypes.ping, isAck ? frameFlags.ack : 0, 0) + data;
}

export function goAwayFrame(lastStreamId: number, errorCode: number): string {
  return frameHeader(8, frameTypes.goAway, 0, 0) + uint32(lastStreamId) + uint32(errorCode);
}

export function rstStreamFrame(streamId: number, errorCode: number): string {
  return frameHeader(4, frameTypes.rstStream, 0, streamId) + uint32(errorCode);
}

export function windowUpdateFrame(streamId: number, bytes: number): string {
  return frameHeader(4, frameTypes.windowUpdate, 0, streamId) + uint32(bytes);
}

/** A field section as HEADERS and, where it is long, CONTINUATIONs (§6.2, §6.10). */
export function headersFrames(block: string, streamId: number, endStream: boolean, maxFrameBytes: number): string {
  const flags = endStream ? frameFlags.endStream : 0;
  if (block.length <= maxFrameBytes) {
    return frameHeader(block.length, frameTypes.headers, flags | frameFlags.endHeaders, streamId) + block;
  }
  let text = frameHeader(maxFrameBytes, frameTypes.headers, flags, streamId) + block.slice(0, maxFrameBytes);
  for (let at = maxFrameBytes; at < block.length; at += maxFrameBytes) {
    const piece = block.slice(at, at + maxFrameBytes);
    const isLast = at + maxFrameBytes >= block.length;
    text += frameHeader(piece.length, frameTypes.continuation, isLast ? frameFlags.endHeaders : 0, streamId) + piece;
  }
  return text;
}
