// A peer of HTTP/2, client or host, that says what a test wants it to, frame by frame, and tells what it is answered.
import { once } from "node:events";
import net from "node:net";
import type { TestContext } from "node:test";
import { inTime } from "../../../../tests/tools/processes.ts";
import { errorCodes, frameTypes, preface } from "../codec/http2/frame.ts";
import { HpackDecoder } from "../codec/http2/hpack/hpack-decoder.ts";

export interface SeenFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const nameOfCode = new Map<number, string>(Object.entries(errorCodes).map(([name, code]) => [code, name]));

/** A frame with any header: what RFC 9113 forbids too. */
export function frame(type: number, flags: number, streamId: number, payload: Buffer | string = ""): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const header = Buffer.alloc(9);
  header.writeUIntBE(bytes.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, bytes]);
}

/** Fields without any compression, so that anything can be said. */
export function plainFields(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const length = (text: string): number[] => {
    if (text.length < 127) return [text.length];
    const bytes = [127];
    let rest = text.length - 127;
    for (; rest > 127; rest >>= 7) bytes.push((rest & 127) | 128);
    return [...bytes, rest];
  };
  return Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([0, ...length(name)]),
      Buffer.from(name, "latin1"),
      Buffer.from(length(value)),
      Buffer.from(value, "latin1"),
    ]),
  );
}

export const emptySettings = frame(frameTypes.settings, 0, 0);

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

export const settingFrame = (id: number, value: number): Buffer =>
  frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.from([0, id]), uint32(value)]));

export interface Http2Host {
  readonly port: number;
  /** Its connections, in order. */
  readonly peers: Http2Peer[];
}

/** A host that says `first` on its first connection, `later` on others, and does `act` for each section that comes. */
export async function runHttp2Host(
  t: TestContext,
  first: Buffer,
  act: (peer: Http2Peer, streamId: number) => void,
  later: Buffer = emptySettings,
): Promise<Http2Host> {
  const peers: Http2Peer[] = [];
  const server = net.createServer((socket) => {
    const peer = Http2Peer.accept(socket, act);
    socket.write(peers.length === 0 ? first : later);
    peers.push(peer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const { socket } of peers) socket.destroy();
  });
  return { port: (server.address() as net.AddressInfo).port, peers };
}

/** One end of a connection. */
export class Http2Peer {
  readonly socket: net.Socket;
  readonly frames: SeenFrame[] = [];
  /** Fields of each HEADERS, in order. */
  readonly heads: { readonly streamId: number; readonly fields: ReadonlyMap<string, string> }[] = [];
  isClosed = false;
  readonly #decoder = new HpackDecoder(4096);
  #received = Buffer.alloc(0);
  #onChange: () => void = () => undefined;
  readonly #onHead: (peer: Http2Peer, streamId: number) => void;
  /** Of the client's preface, what has not come. */
  #prefaceLeft: number;

  private constructor(
    socket: net.Socket,
    prefaceBytes = 0,
    onHead: (peer: Http2Peer, streamId: number) => void = () => undefined,
  ) {
    this.socket = socket;
    this.#prefaceLeft = prefaceBytes;
    this.#onHead = onHead;
    socket.on("error", () => undefined);
    socket.on("data", (data: Buffer) => {
      this.#received = Buffer.concat([this.#received, data]);
      this.#cut();
      this.#onChange();
    });
    socket.on("close", () => {
      this.isClosed = true;
      this.#onChange();
    });
  }

  static async connect(port: number): Promise<Http2Peer> {
    const socket = net.connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new Http2Peer(socket);
  }

  static accept(socket: net.Socket, onHead: (peer: Http2Peer, streamId: number) => void): Http2Peer {
    return new Http2Peer(socket, preface.length, onHead);
  }

  /** With the preface and our SETTINGS before it. */
  static async open(port: number, settings: Buffer = emptySettings): Promise<Http2Peer> {
    const peer = await Http2Peer.connect(port);
    peer.socket.write(preface, "latin1");
    peer.socket.write(settings);
    return peer;
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /** Resolves when the condition holds; rejects when the connection has ended before. */
  async until(condition: (peer: Http2Peer) => boolean): Promise<void> {
    while (!condition(this)) {
      if (this.isClosed) throw new Error(`the connection has ended: ${this.summary()}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onChange = resolve;
      await inTime(promise, `${String(condition)} behind ${this.summary()}`);
    }
  }

  /** What came, as `HEADERS 1 200`, `RST_STREAM 1 protocolError`, `GOAWAY flowControlError`. */
  summary(): string {
    const lines: string[] = [];
    let head = 0;
    for (const { type, streamId, payload } of this.frames) {
      if (type === frameTypes.headers) lines.push(`HEADERS ${streamId} ${this.heads[head++]?.fields.get(":status")}`);
      else if (type === frameTypes.rstStream)
        lines.push(`RST_STREAM ${streamId} ${nameOfCode.get(payload.readUInt32BE(0))}`);
      else if (type === frameTypes.goAway) lines.push(`GOAWAY ${nameOfCode.get(payload.readUInt32BE(4))}`);
    }
    return lines.join(", ");
  }

  #cut(): void {
    if (this.#received.length < this.#prefaceLeft) return;
    this.#received = this.#received.subarray(this.#prefaceLeft);
    this.#prefaceLeft = 0;
    for (;;) {
      const bytes = this.#received;
      if (bytes.length < 9) return;
      const length = bytes.readUIntBE(0, 3);
      if (bytes.length < 9 + length) return;
      const payload = bytes.subarray(9, 9 + length);
      const seen = { type: bytes[3]!, flags: bytes[4]!, streamId: bytes.readUInt32BE(5) & 0x7fff_ffff, payload };
      this.frames.push(seen);
      if (seen.type === frameTypes.headers) this.#readHead(seen);
      this.#received = bytes.subarray(9 + length);
    }
  }

  #readHead({ streamId, payload }: SeenFrame): void {
    const fields = new Map<string, string>();
    this.#decoder.decode(payload, 0, payload.length, { onField: (name, value) => void fields.set(name, value) });
    this.heads.push({ streamId, fields });
    this.#onHead(this, streamId);
  }
}
