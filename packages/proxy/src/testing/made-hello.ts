// ClientHellos put together by hand, for what no client sends.

/** The same message in records of so many bytes (RFC 8446 §5.1). */
export function inRecordsOf(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let position = 0; position < message.length; position += size) {
    const piece = message.subarray(position, position + size);
    records.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 0xff]), piece);
  }
  return Buffer.concat(records);
}

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const vector16 = (body: Buffer): Buffer => Buffer.concat([u16(body.length), body]);
export const extension = (type: number, body: Buffer): Buffer => Buffer.concat([u16(type), vector16(body)]);
export const serverName = (name: Buffer, type = 0): Buffer =>
  extension(0, vector16(Buffer.concat([Buffer.from([type]), vector16(name)])));

export interface HelloParts {
  readonly version?: number;
  readonly sessionBytes?: number;
  readonly suites?: Buffer;
  readonly compressions?: Buffer;
  readonly extensions?: Buffer;
  readonly behind?: Buffer;
}

export function helloFrom(parts: HelloParts): Buffer {
  const { sessionBytes = 0, suites = Buffer.from([0x13, 1]), compressions = Buffer.from([0]) } = parts;
  const body = Buffer.concat([
    u16(parts.version ?? 0x0303),
    Buffer.alloc(32, 7),
    Buffer.from([sessionBytes]),
    Buffer.alloc(sessionBytes),
    vector16(suites),
    Buffer.from([compressions.length]),
    compressions,
    ...(parts.extensions === undefined ? [] : [vector16(parts.extensions)]),
    parts.behind ?? Buffer.alloc(0),
  ]);
  const header = Buffer.from([1, 0, body.length >> 8, body.length & 0xff]);
  return inRecordsOf(Buffer.concat([Buffer.alloc(5), header, body]), 16_384);
}

export const versions = (...list: number[]): Buffer =>
  extension(43, Buffer.concat([Buffer.from([list.length * 2]), ...list.map(u16)]));
