// The requests of one client connection as HTTP/1.1 writes them: request line, fields, and the framing of the body. One
// instance writes all requests of a connection in turn.
import type { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import type { SocketOutput } from "../../worker/socket-output.ts";
import { keyField, newWebSocketKey } from "../websocket-key.ts";
import { fieldLines } from "./field-lines.ts";
import type { Http1StreamBytes } from "./http1-stream-bytes.ts";

/** Without a body they need not say so. */
const bodilessMethods = new Set(["GET", "HEAD", "DELETE", "TRACE", "CONNECT"]);

export class RequestEncoder {
  readonly #output: SocketOutput;
  readonly #bytes: Http1StreamBytes;
  readonly #enableTrailers: boolean;
  #isChunked = false;
  /** The request asks for a tunnel: what follows its head has no framing. */
  isUpgrade = false;
  /** That of a WebSocket whose client has none, since it speaks HTTP/2; empty for others. */
  madeKey = "";

  constructor(output: SocketOutput, bytes: Http1StreamBytes, enableTrailers: boolean) {
    this.#output = output;
    this.#bytes = bytes;
    this.#enableTrailers = enableTrailers;
  }

  writeHead(head: RequestHead, endStream: boolean): void {
    const { method } = head;
    this.isUpgrade = head.upgrade !== undefined;
    const target = method === "CONNECT" ? head.authority : head.path;
    const firstLine = `${method} ${target} HTTP/1.1\r\n`;
    let text = `${firstLine}host: ${head.authority}\r\n`;
    const entries = head.headers.entries;
    let hasLength = false;
    for (let index = 0; index < entries.length; index += 2) {
      const name = entries[index]!;
      if (name === "content-length") hasLength = true;
      text += `${name}: ${entries[index + 1]!}\r\n`;
    }
    this.#isChunked = false;
    this.madeKey = "";
    if (this.isUpgrade) {
      if (method !== "CONNECT") text += `connection: upgrade\r\nupgrade: ${head.upgrade}\r\n`;
      if (head.upgrade === "websocket" && head.protocol === "HTTP/2" && !head.headers.has(keyField)) {
        this.madeKey = newWebSocketKey();
        text += `${keyField}: ${this.madeKey}\r\n`;
      }
    } else if (!hasLength) {
      if (!endStream) {
        this.#isChunked = true;
        text += "transfer-encoding: chunked\r\n";
      } else if (!bodilessMethods.has(method)) {
        text += "content-length: 0\r\n";
      }
    }
    this.#bytes.headerBytesSent += text.length - firstLine.length;
    this.#output.writeText(`${text}\r\n`);
  }

  writeData(chunk: Buffer, endStream: boolean): void {
    if (this.#isChunked) {
      this.#output.writeChunk(chunk);
      if (endStream) this.#output.writeText("0\r\n\r\n");
    } else {
      this.#output.writeBody(chunk);
    }
    if (endStream && this.isUpgrade) this.#output.end();
  }

  writeTrailers(trailers: HeaderMap): void {
    if (!this.#isChunked) return;
    const lines = this.#enableTrailers ? fieldLines(trailers.entries) : "";
    this.#bytes.headerBytesSent += lines.length;
    this.#output.writeText(`0\r\n${lines}\r\n`);
  }
}
