// Reads the first message of a TLS client without taking it from the connection: which name it asks for, which
// protocols it offers (RFC 8446 §4.1.2, RFC 6066 §3, RFC 7301 §3.1). Everything else of the message is OpenSSL's to
// judge, later. Security code: every length is checked against what encloses it, nothing is repaired.

/**
 * - `incomplete`: so far it may be a ClientHello.
 * - `other`: it is none, or not whole in itself; the connection counts as plain, as in Envoy.
 */
export type ClientHelloOutcome = { readonly type: "incomplete" } | { readonly type: "other" } | ClientHello;

export interface ClientHello {
  readonly type: "hello";
  /** As sent, latin1; empty = no name. */
  readonly serverName: string;
  readonly applicationProtocols: readonly string[];
  readonly legacyVersion: number;
  /** Two bytes each. */
  readonly cipherSuites: Buffer;
  /** By type, in the order in which they stand. */
  readonly extensions: ReadonlyMap<number, Buffer>;
}

const incomplete: ClientHelloOutcome = { type: "incomplete" };
const other: ClientHelloOutcome = { type: "other" };

const handshakeRecord = 22;
const clientHelloMessage = 1;
const recordHeaderBytes = 5;
const messageHeaderBytes = 4;
/** RFC 8446 §5.1: a plain record. */
const maxRecordBytes = 16_384;
/** What BoringSSL takes of a ClientHello, and with it Envoy. */
const maxMessageBytes = 16_384;
const maxServerNameBytes = 255;

export const extensionServerName = 0;
export const extensionProtocols = 16;

/** Reads one client's hello as it comes; each record is looked at once. */
export class ClientHelloReader {
  /** Where the record begins that has not been read. */
  #position = 0;
  /** Of the records before: parts of the message. */
  readonly #pieces: Buffer[] = [];
  #collected = 0;
  #needed = messageHeaderBytes;

  /** `data`: all bytes that the connection has brought so far, from its first. */
  read(data: Buffer): ClientHelloOutcome {
    while (this.#collected < this.#needed) {
      const outcome = recordHeader(data, this.#position);
      if (outcome !== undefined) return outcome;
      const length = data.readUInt16BE(this.#position + 3);
      const start = this.#position + recordHeaderBytes;
      // Judged as a whole, as BoringSSL does.
      if (start + length > data.length) return incomplete;
      const isFirst = this.#needed === messageHeaderBytes;
      this.#pieces.push(data.subarray(start, start + length));
      this.#collected += length;
      this.#position = start + length;
      if (isFirst && !this.#readMessageHeader()) return other;
    }
    return readMessage(this.#message().subarray(messageHeaderBytes, this.#needed));
  }

  /** As far as it has come; false when it is no hello. */
  #readMessageHeader(): boolean {
    const message = this.#message();
    if (message[0] !== clientHelloMessage) return false;
    if (message.length < messageHeaderBytes) return true;
    const length = message.readUIntBE(1, 3);
    if (length > maxMessageBytes) return false;
    this.#needed = messageHeaderBytes + length;
    return true;
  }

  #message(): Buffer {
    return this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
  }
}

/** Undefined when a whole header of a handshake record stands there. */
function recordHeader(data: Buffer, position: number): ClientHelloOutcome | undefined {
  const available = data.length - position;
  if (available > 0 && data[position] !== handshakeRecord) return other;
  // The minor version says nothing (RFC 8446 §5.1).
  if (available > 1 && data[position + 1] !== 3) return other;
  if (available < recordHeaderBytes) return incomplete;
  const length = data.readUInt16BE(position + 3);
  // Fragments of handshake messages are never empty (RFC 8446 §5.1).
  return length === 0 || length > maxRecordBytes ? other : undefined;
}

/** A cursor over bytes that ends where they end; reading past it gives undefined. */
export class Cursor {
  readonly #data: Buffer;
  #position = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#data.length;
  }

  number(bytes: 1 | 2): number | undefined {
    if (this.#position + bytes > this.#data.length) return undefined;
    const value = this.#data.readUIntBE(this.#position, bytes);
    this.#position += bytes;
    return value;
  }

  take(length: number): Buffer | undefined {
    if (this.#position + length > this.#data.length) return undefined;
    const taken = this.#data.subarray(this.#position, this.#position + length);
    this.#position += length;
    return taken;
  }

  /** A vector with its length before it. */
  vector(lengthBytes: 1 | 2): Buffer | undefined {
    const length = this.number(lengthBytes);
    return length === undefined ? undefined : this.take(length);
  }
}

function readMessage(message: Buffer): ClientHelloOutcome {
  const cursor = new Cursor(message);
  const legacyVersion = cursor.number(2);
  const random = cursor.take(32);
  const session = cursor.vector(1);
  const suites = cursor.vector(2);
  const compressions = cursor.vector(1);
  if (legacyVersion === undefined || random === undefined || session === undefined || session.length > 32) return other;
  if (suites === undefined || suites.length === 0 || suites.length % 2 !== 0) return other;
  if (compressions === undefined || compressions.length === 0) return other;
  const extensions = cursor.isAtEnd ? new Map<number, Buffer>() : readExtensions(cursor);
  if (extensions === undefined) return other;
  const serverName = readServerName(extensions.get(extensionServerName));
  if (serverName === undefined) return other;
  const applicationProtocols = readProtocols(extensions.get(extensionProtocols));
  return { type: "hello", serverName, applicationProtocols, legacyVersion, cipherSuites: suites, extensions };
}

/** Undefined where they are malformed or one comes twice (RFC 8446 §4.2). */
function readExtensions(cursor: Cursor): Map<number, Buffer> | undefined {
  const block = cursor.vector(2);
  if (block === undefined || !cursor.isAtEnd) return undefined;
  const found = new Map<number, Buffer>();
  const list = new Cursor(block);
  while (!list.isAtEnd) {
    const type = list.number(2);
    const body = list.vector(2);
    if (type === undefined || body === undefined || found.has(type)) return undefined;
    found.set(type, body);
  }
  return found;
}

/** Exactly one name of type host_name, as BoringSSL reads it; undefined where it is malformed. */
function readServerName(extension: Buffer | undefined): string | undefined {
  if (extension === undefined) return "";
  const cursor = new Cursor(extension);
  const names = cursor.vector(2);
  if (names === undefined || !cursor.isAtEnd) return undefined;
  const list = new Cursor(names);
  const type = list.number(1);
  const name = list.vector(2);
  if (type !== 0 || name === undefined || !list.isAtEnd) return undefined;
  if (name.length === 0 || name.length > maxServerNameBytes || name.includes(0)) return undefined;
  return name.toString("latin1");
}

/** A malformed list counts as none: whether that is an error is for OpenSSL to say, as in Envoy. */
function readProtocols(extension: Buffer | undefined): readonly string[] {
  if (extension === undefined) return [];
  const cursor = new Cursor(extension);
  const block = cursor.vector(2);
  if (block === undefined || !cursor.isAtEnd) return [];
  const protocols: string[] = [];
  const list = new Cursor(block);
  while (!list.isAtEnd) {
    const name = list.vector(1);
    if (name === undefined || name.length === 0) return [];
    protocols.push(name.toString("latin1"));
  }
  return protocols;
}
