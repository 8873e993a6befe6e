// The client of a row of the failure table: it does what the row says in the version that it speaks.
import http2 from "node:http2";
import type net from "node:net";
import type { HttpVersion } from "../../../../../tests/tools/http2-client.ts";
import { waitFor } from "../../../../../tests/tools/processes.ts";

/** Longest wait for anything, on a machine that does other work too. */
export const patienceMs = 60_000;

/** What both versions can say. */
export interface FailureRequest {
  readonly path: string;
  readonly method?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** More of the body is to come. */
  readonly isOpen?: boolean;
  /** More requests are to come. */
  readonly isKept?: boolean;
}

export abstract class FailureClient {
  readonly socket: net.Socket;
  /** For paths that no other client asks for. */
  readonly id: string;
  /** Of the answers. */
  received = "";
  #isClosed = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    this.id = socket.localAddress!.replaceAll(".", "-");
    socket.on("error", () => undefined).on("close", () => (this.#isClosed = true));
  }

  abstract ask(request: FailureRequest): void;
  /** Of which any number of letters may follow. */
  abstract beginHead(): void;
  /** More of an open body or head. */
  abstract write(text: string): void;
  /** Takes nothing of what is answered. */
  abstract pause(): void;
  abstract resume(): void;
  /** Until the last answer is over. */
  abstract answered(): Promise<void>;

  async receive(pattern: RegExp): Promise<void> {
    await this.until(() => pattern.test(this.received), `${String(pattern)} in an answer`);
  }

  /** Until the connection is over. */
  async end(): Promise<void> {
    await this.until(() => this.#isClosed, "the end of the connection");
  }

  protected take(data: Buffer): void {
    // Endless answers are not kept.
    if (this.received.length < 100_000) this.received += data.toString("latin1");
  }

  protected async until(isSo: () => boolean, what: string): Promise<void> {
    await waitFor(isSo, { timeoutMs: patienceMs, what, details: () => this.received.slice(0, 500) });
  }
}

class Http1Client extends FailureClient {
  constructor(socket: net.Socket) {
    super(socket);
    socket.on("data", (data: Buffer) => this.take(data));
  }

  ask({ path, method = "GET", fields = {}, body = "", isOpen = false, isKept = false }: FailureRequest): void {
    const isSized = "content-length" in fields || (body === "" && !isOpen);
    const lines = Object.entries({
      host: "a",
      ...(isKept || isOpen ? {} : { connection: "close" }),
      // A chunk that is longer than whatever follows.
      ...(isSized ? {} : isOpen ? { "transfer-encoding": "chunked" } : { "content-length": String(body.length) }),
      ...fields,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    const start = isOpen && !isSized ? "ffff\r\n" : "";
    this.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${start}${body}`);
  }

  beginHead(): void {
    this.write("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  }

  write(text: string): void {
    this.socket.write(text, "latin1");
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Who keeps its connection asks for no more than one answer of it. */
  answered(): Promise<void> {
    return this.end();
  }
}

/** The preface, SETTINGS, HEADERS that hold `:method: GET` alone, and the beginning of CONTINUATION of 16,384 bytes. */
const halfHead = [
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "\0\0\0\x04\0\0\0\0\0",
  "\0\0\x01\x01\0\0\0\0\x01\x82",
  "\0\x40\0\x09\x04\0\0\0\x01",
].join("");

class Http2Client extends FailureClient {
  #session: http2.ClientHttp2Session | undefined;
  #stream: http2.ClientHttp2Stream | undefined;
  #isRaw = false;
  #isPaused = false;

  /** Its preface is all that a client sends who asks nothing. */
  #open(): http2.ClientHttp2Session {
    this.#session ??= http2.connect("http://a", { createConnection: () => this.socket }).on("error", () => undefined);
    return this.#session;
  }

  ask({ path, method = "GET", fields = {}, body = "", isOpen = false }: FailureRequest): void {
    const head = { ":method": method, ":scheme": "http", ":authority": "a", ":path": path, ...fields };
    const stream = this.#open().request(head, { endStream: body === "" && !isOpen });
    stream.on("error", () => undefined);
    if (!this.#isPaused) stream.on("data", (data: Buffer) => this.take(data));
    if (isOpen) stream.write(body, "latin1");
    else if (body !== "") stream.end(body, "latin1");
    this.#stream = stream;
  }

  /** Without a session: none would send half a head. */
  beginHead(): void {
    this.#isRaw = true;
    this.socket.on("data", (data: Buffer) => this.take(data));
    this.write(halfHead);
  }

  write(text: string): void {
    if (this.#isRaw) this.socket.write(text, "latin1");
    else if (this.#stream?.writable === true) this.#stream.write(text, "latin1");
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#stream?.resume();
  }

  override async end(): Promise<void> {
    this.#open();
    await super.end();
  }

  async answered(): Promise<void> {
    await this.until(() => this.#stream!.closed, "the end of the stream");
  }
}

export const clients: Readonly<Record<HttpVersion, (socket: net.Socket) => FailureClient>> = {
  "HTTP/1.1": (socket) => new Http1Client(socket),
  "HTTP/2": (socket) => new Http2Client(socket),
};
