// DNS messages as far as names of the mesh need them (RFC 1035 §4): the question of a query, and an answer to it. The
// question goes back as it came, byte for byte: resolvers that mix upper and lower case, to be harder to fool, compare.

export const recordType = {
  A: 1,
  CNAME: 5,
  PTR: 12,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
} as const;
export const responseCode = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const;

/** What a client asks, in the one form that we answer: one question, and at most an OPT record behind it. */
export interface DnsQuery {
  /** In lower case, without the dot at its end; empty for the root. */
  readonly name: string;
  readonly type: number;
  /** The longest answer that the client takes in one datagram, in bytes. */
  readonly maxDatagramBytes: number;
  /** Undefined without an OPT record (RFC 6891). */
  readonly ednsVersion: number | undefined;
  /** Where the question ends. */
  readonly questionEnd: number;
}

/**
 * - `query`: one that may be about a name of the mesh.
 * - `transfer`: one for all of a zone, which is answered with many messages.
 * - `foreign`: a message of another kind, such as an update or a signed one; only a server that knows it can answer.
 * - `malformed`: a query that nobody can answer, such as one with two questions (RFC 9619 §4).
 * - `noQuery`: too short for a header, or an answer.
 */
export type ReadMessage =
  | { readonly kind: "query" | "transfer"; readonly query: DnsQuery }
  | "foreign"
  | "malformed"
  | "noQuery";

export const headerBytes = 12;
const flagResponse = 0x80;
const opcodeMask = 0x78;
const flagAuthoritative = 0x04;
const flagTruncated = 0x02;
const flagRecursionDesired = 0x01;
const flagRecursionAvailable = 0x80;
const flagCheckingDisabled = 0x10;
const flagDnssecOk = 0x80;
const classInternet = 1;
/** RFC 1035 §2.3.4 */
const maxNameBytes = 255;
const maxLabelBytes = 63;
/** RFC 1035 §4.2.1; an OPT record can ask for more. */
const plainDatagramBytes = 512;
/** What one datagram of ours holds at most: it stays on this machine, where no link is narrower. */
const maxDatagramBytes = 4096;

export function readQuery(message: Buffer): ReadMessage {
  if (message.length < headerBytes || (message[2]! & flagResponse) !== 0) return "noQuery";
  if ((message[2]! & opcodeMask) !== 0) return "foreign";
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map((at) => message.readUInt16BE(at));
  if (questions !== 1) return "malformed";
  const name = readName(message, headerBytes);
  if (name === undefined || name.end + 4 > message.length) return "malformed";
  const questionEnd = name.end + 4;
  const type = message.readUInt16BE(name.end);
  const query = { name: name.text ?? "", type, questionEnd };
  const plain = { ...query, maxDatagramBytes: plainDatagramBytes, ednsVersion: undefined };
  if (type === recordType.AXFR || type === recordType.IXFR) return { kind: "transfer", query: plain };
  const isInternet = message.readUInt16BE(name.end + 2) === classInternet;
  if (!isInternet || name.text === undefined || answers !== 0 || authorities !== 0) return "foreign";
  if (additional === 0) return { kind: "query", query: plain };
  // An OPT record has the root for its name, the client's limit for its class, and the version in its time to live.
  const isOpt =
    additional === 1 &&
    message.length >= questionEnd + 11 &&
    message[questionEnd] === 0 &&
    message.readUInt16BE(questionEnd + 1) === recordType.OPT;
  if (!isOpt) return "foreign";
  const asked = message.readUInt16BE(questionEnd + 3);
  return {
    kind: "query",
    query: {
      ...query,
      maxDatagramBytes: Math.min(Math.max(asked, plainDatagramBytes), maxDatagramBytes),
      ednsVersion: message[questionEnd + 6]!,
    },
  };
}

interface ReadName {
  /** Undefined for a name whose labels hold what no name of a host does. */
  readonly text: string | undefined;
  readonly end: number;
}

/** Undefined for what is no name. There is nothing before a question that a pointer in it could lead to. */
function readName(message: Buffer, start: number): ReadName | undefined {
  const labels: string[] = [];
  let isHostName = true;
  let at = start;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > maxLabelBytes) return undefined;
    if (length === 0) break;
    const end = at + 1 + length;
    if (end > message.length || end - start >= maxNameBytes) return undefined;
    const label = message.toString("latin1", at + 1, end).toLowerCase();
    isHostName &&= /^[a-z0-9_*-]+$/.test(label);
    labels.push(label);
    at = end;
  }
  return { text: isHostName ? labels.join(".") : undefined, end: at + 1 };
}

/** One record of an answer. */
export interface DnsRecord {
  /** Whose record it is; undefined = the name that was asked for, as it was written. */
  readonly name?: string;
  readonly type: number;
  /** The bytes before `target`, which is a name; either may be missing. */
  readonly data?: Uint8Array;
  readonly target?: string;
}

export interface DnsAnswer {
  readonly code: number;
  readonly answers: readonly DnsRecord[];
  /** Left out first where the answer is too long. */
  readonly additional?: readonly DnsRecord[];
}

export const noRecords: readonly DnsRecord[] = [];

/** Addresses of the mesh change; who keeps them at all keeps them for this long (Istio's agent: 30 s). */
const timeToLiveSeconds = 30;
const questionPointer = 0xc0_00 | headerBytes;

/**
 * The answer's bytes. Over `limitBytes` it ends with the last record that fits, and says that it was cut (RFC 1035
 * §4.1.1, TC): the client asks again over TCP.
 */
export function writeAnswer(query: Buffer, asked: DnsQuery, answer: DnsAnswer, limitBytes: number): Buffer {
  const optBytes = asked.ednsVersion === undefined ? 0 : 11;
  const writer = new RecordWriter(query.subarray(headerBytes, asked.questionEnd), limitBytes - optBytes);
  const answers = writer.writeAll(answer.answers);
  const isCut = answers < answer.answers.length;
  const additional = isCut ? 0 : writer.writeAll(answer.additional ?? noRecords);
  const bytes = writer.bytes;
  writeHeader(bytes, query, answer.code, isCut);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(answers, 6);
  bytes.writeUInt16BE(0, 8);
  bytes.writeUInt16BE(additional + (optBytes > 0 ? 1 : 0), 10);
  if (optBytes === 0) return bytes;
  const opt = Buffer.alloc(optBytes);
  opt.writeUInt16BE(recordType.OPT, 1);
  opt.writeUInt16BE(maxDatagramBytes, 3);
  opt[5] = answer.code >> 4;
  // RFC 3225 §3: DO comes back as it was asked.
  opt[7] = query[asked.questionEnd + 7]! & flagDnssecOk;
  return Buffer.concat([bytes, opt]);
}

/** An answer that says only that there is none, to whatever has a header. */
export function refuse(query: Buffer, code: number): Buffer {
  const bytes = Buffer.alloc(headerBytes);
  writeHeader(bytes, query, code, false);
  return bytes;
}

function writeHeader(bytes: Buffer, query: Buffer, code: number, isCut: boolean): void {
  query.copy(bytes, 0, 0, 2);
  const copied = query[2]! & (opcodeMask | flagRecursionDesired);
  const authoritative = code === responseCode.noError || code === responseCode.nameError ? flagAuthoritative : 0;
  bytes[2] = flagResponse | copied | authoritative | (isCut ? flagTruncated : 0);
  bytes[3] = flagRecursionAvailable | (query[3]! & flagCheckingDisabled) | (code & responseCodeMask);
}

class RecordWriter {
  #bytes: Buffer;
  readonly #limitBytes: number;
  #length: number;
  /** Names that stand written somewhere. */
  readonly #offsets = new Map<string, number>();

  constructor(question: Uint8Array, limitBytes: number) {
    this.#bytes = Buffer.alloc(Math.min(limitBytes, plainDatagramBytes));
    this.#bytes.set(question, headerBytes);
    this.#length = headerBytes + question.length;
    this.#limitBytes = limitBytes;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** How many of them fit. */
  writeAll(records: readonly DnsRecord[]): number {
    for (const [index, record] of records.entries()) if (!this.#write(record)) return index;
    return records.length;
  }

  #write({ name, type, data, target }: DnsRecord): boolean {
    const pointer = name === undefined ? questionPointer : this.#offsets.get(name);
    const ownerBytes = pointer === undefined ? nameBytes(name!) : 2;
    const dataBytes = (data?.length ?? 0) + (target === undefined ? 0 : nameBytes(target));
    const end = this.#length + ownerBytes + 10 + dataBytes;
    if (end > this.#limitBytes) return false;
    this.#reserve(end);
    const bytes = this.#bytes;
    let at = this.#length;
    if (pointer === undefined) at = this.#writeName(name!, at);
    else at = bytes.writeUInt16BE(pointer, at);
    at = bytes.writeUInt16BE(type, at);
    at = bytes.writeUInt16BE(classInternet, at);
    at = bytes.writeUInt32BE(timeToLiveSeconds, at);
    at = bytes.writeUInt16BE(dataBytes, at);
    if (data !== undefined) {
      bytes.set(data, at);
      at += data.length;
    }
    if (target !== undefined) this.#writeName(target, at);
    this.#length = end;
    return true;
  }

  #writeName(name: string, start: number): number {
    if (start < 0x40_00 && !this.#offsets.has(name)) this.#offsets.set(name, 0xc0_00 | start);
    let at = start;
    for (const label of name.split(".")) {
      this.#bytes[at] = label.length;
      at += 1 + this.#bytes.write(label, at + 1, "latin1");
    }
    this.#bytes[at] = 0;
    return at + 1;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return;
    const grown = Buffer.alloc(Math.min(this.#limitBytes, Math.max(bytes, this.#bytes.length * 2)));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** Of a name of at least one label. */
function nameBytes(name: string): number {
  return name.length + 2;
}

/**
 * Whether the message answers the query: the same number and the same question. Anything else that comes is not from
 * the server that was asked, or late. Some servers send names back in lower case; who mixes cases compares himself.
 */
export function isAnswerTo(message: Buffer, query: Buffer): boolean {
  if (message.length < headerBytes || (message[2]! & flagResponse) === 0) return false;
  if (message[0] !== query[0] || message[1] !== query[1]) return false;
  const questions = query.readUInt16BE(4);
  const has = message.readUInt16BE(4);
  // A server that cannot read the query sends back its header alone.
  if (has === 0) return (message[3]! & responseCodeMask) !== responseCode.noError;
  if (has !== questions) return false;
  const nameEnd = questions === 1 ? readName(query, headerBytes)?.end : undefined;
  if (nameEnd === undefined) return true;
  const end = nameEnd + 4;
  if (message.length < end || message.compare(query, nameEnd, end, nameEnd, end) !== 0) return false;
  for (let at = headerBytes; at < nameEnd; at += 1) {
    if (message[at] !== query[at] && lowerCase(message[at]!) !== lowerCase(query[at]!)) return false;
  }
  return true;
}

/** A length of a label is less than any letter. */
function lowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** That a server cannot or will not answer, which says nothing of the name. */
export function isRefusal(message: Buffer): boolean {
  return refusals.has(message[3]! & responseCodeMask);
}

const responseCodeMask = 0xf;
const refusals: ReadonlySet<number> = new Set([
  responseCode.serverFailure,
  responseCode.notImplemented,
  responseCode.refused,
]);
