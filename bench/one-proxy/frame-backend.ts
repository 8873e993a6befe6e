// A host that speaks HTTP/2 and gRPC: the same answer to each request once all of it has come, in DATA frames of one
// size. It works on frames, not on requests, so that it is no slower than what it is asked by; of its peers it believes
// everything. Arguments: ip:port and a FrameAnswer as JSON.
import { createServer, type Socket } from "node:net";

export interface FrameAnswer {
  readonly frames: number;
  /** At most 16,384. */
  readonly frameBytes: number;
  /** Each frame is a message, and trailers end the answer. */
  readonly isGrpc: boolean;
}

const [address = "", answerText = ""] = process.argv.slice(2);
const answer = JSON.parse(answerText) as FrameAnswer;
const [host, port] = address.split(":") as [string, string];

const headerBytes = 9;
const prefaceBytes = 24;
const endStream = 0x1;
const endHeaders = 0x4;
const types = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, windowUpdate: 8 } as const;
const initialWindowSetting = 4;
const largestWindow = 0x7fff_ffff;
/** Credit is given in pieces of it. */
const creditBytes = 1 << 24;
/** What one turn writes of large answers. */
const maxTurnBytes = 1 << 18;

function frame(type: number, flags: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(headerBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  payload.copy(bytes, headerBytes);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** With a place in the peer's table (RFC 7541 §6.2.1). */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0x40, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
}

function body(): Buffer {
  const bytes = Buffer.alloc(answer.frameBytes, answer.isGrpc ? 0 : "x");
  if (answer.isGrpc) bytes.writeUInt32BE(answer.frameBytes - 5, 1);
  return bytes;
}

const status200 = Buffer.of(0x88);
const contentType = literal("content-type", answer.isGrpc ? "application/grpc" : "text/plain");
// The first answer of a connection puts its fields into the peer's table: 62 is what came last, 63 what came before.
const firstHead = frame(types.headers, endHeaders, Buffer.concat([status200, contentType]));
const [headAt62, headAt63] = [0xbe, 0xbf].map((field) => frame(types.headers, endHeaders, Buffer.of(0x88, field)));
const data = frame(types.data, 0, body());
const lastData = frame(types.data, answer.isGrpc ? 0 : endStream, body());
const firstTrailers = frame(types.headers, endHeaders | endStream, literal("grpc-status", "0"));
const nextTrailers = frame(types.headers, endHeaders | endStream, Buffer.of(0xbe));

interface Stream {
  readonly id: number;
  framesLeft: number;
  windowBytes: number;
}

class Connection {
  readonly #socket: Socket;
  #rest: Buffer = Buffer.alloc(0);
  #toSkip = prefaceBytes;
  #streamWindowBytes = 65_535;
  #windowBytes = 65_535;
  #receivedBytes = 0;
  readonly #streams = new Map<number, Stream>();
  #hasSentHead = false;
  #hasSentTrailers = false;
  #out: Buffer[] = [];
  #outBytes = 0;
  #isFull = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    socket.on("drain", () => {
      this.#isFull = false;
      this.#pump();
    });
    socket.on("error", () => socket.destroy());
    const settings = Buffer.concat([Buffer.of(0, initialWindowSetting), uint32(largestWindow)]);
    this.#push(frame(types.settings, 0, settings), 0);
    this.#push(frame(types.windowUpdate, 0, uint32(largestWindow - 65_535)), 0);
  }

  #onData(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = Math.min(this.#toSkip, bytes.length);
    this.#toSkip -= at;
    while (bytes.length - at >= headerBytes) {
      const next = at + headerBytes + bytes.readUIntBE(at, 3);
      if (next > bytes.length) break;
      this.#onFrame(bytes[at + 3]!, bytes[at + 4]!, bytes.readUInt32BE(at + 5), bytes.subarray(at + headerBytes, next));
      at = next;
    }
    this.#rest = Buffer.from(bytes.subarray(at));
    this.#pump();
  }

  #onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    switch (type) {
      case types.data:
        this.#receivedBytes += payload.length;
        if (this.#receivedBytes >= creditBytes) {
          this.#push(frame(types.windowUpdate, 0, uint32(this.#receivedBytes)), 0);
          this.#receivedBytes = 0;
        }
        if ((flags & endStream) !== 0) this.#begin(id);
        break;
      case types.headers:
        if ((flags & endStream) !== 0) this.#begin(id);
        break;
      case types.rstStream:
        this.#streams.delete(id);
        break;
      case types.settings:
        if ((flags & 0x1) === 0) this.#takeSettings(payload);
        break;
      case types.ping:
        if ((flags & 0x1) === 0) this.#push(frame(types.ping, 0x1, payload), 0);
        break;
      case types.windowUpdate:
        if (id === 0) this.#windowBytes += payload.readUInt32BE();
        else if (this.#streams.has(id)) this.#streams.get(id)!.windowBytes += payload.readUInt32BE();
        break;
    }
  }

  #takeSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== initialWindowSetting) continue;
      const before = this.#streamWindowBytes;
      this.#streamWindowBytes = payload.readUInt32BE(at + 2);
      for (const stream of this.#streams.values()) stream.windowBytes += this.#streamWindowBytes - before;
    }
    this.#push(frame(types.settings, 0x1, Buffer.alloc(0)), 0);
  }

  #begin(id: number): void {
    this.#streams.set(id, { id, framesLeft: answer.frames, windowBytes: this.#streamWindowBytes });
    this.#push(!this.#hasSentHead ? firstHead : this.#hasSentTrailers ? headAt63! : headAt62!, id);
    this.#hasSentHead = true;
  }

  /** A frame of each stream in turn, while windows and socket allow. */
  #pump(): void {
    for (let hasWritten = true; hasWritten && !this.#isFull;) {
      hasWritten = false;
      for (const stream of this.#streams.values()) {
        if (Math.min(stream.windowBytes, this.#windowBytes) < answer.frameBytes) continue;
        hasWritten = true;
        stream.windowBytes -= answer.frameBytes;
        this.#windowBytes -= answer.frameBytes;
        stream.framesLeft -= 1;
        this.#push(stream.framesLeft === 0 ? lastData : data, stream.id);
        if (stream.framesLeft === 0) this.#end(stream);
      }
      if (this.#outBytes >= maxTurnBytes) this.#flush();
    }
    this.#flush();
  }

  #end({ id }: Stream): void {
    this.#streams.delete(id);
    if (!answer.isGrpc) return;
    this.#push(this.#hasSentTrailers ? nextTrailers : firstTrailers, id);
    this.#hasSentTrailers = true;
  }

  #push(template: Buffer, id: number): void {
    const bytes = Buffer.from(template);
    bytes.writeUInt32BE(id, 5);
    this.#out.push(bytes);
    this.#outBytes += bytes.length;
  }

  #flush(): void {
    if (this.#out.length === 0) return;
    this.#isFull = !this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
    this.#outBytes = 0;
  }
}

createServer((socket) => void new Connection(socket)).listen(Number(port), host);
