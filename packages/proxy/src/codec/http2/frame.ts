// Frames of HTTP/2 (RFC 9113 §4, §6): their numbers, and the header that each begins with.

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

/** `length` is that of the payload. */
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
