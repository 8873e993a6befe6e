// The answers of one server connection as HTTP/1.1 writes them: status line, fields, and the framing of the body that
// follows from the request, the status and what the answer says of its length. One instance serves all answers of a
// connection in turn.
import type { HeaderMap } from "../../http/header-map.ts";
import type { ResponseHead } from "../../http/message.ts";
import { fieldLines } from "./field-lines.ts";
import type { Http1StreamBytes } from "./http1-stream-bytes.ts";
import type { SocketOutput } from "../../worker/socket-output.ts";
import { mayHaveBody, statusLine } from "./status-line.ts";

/**
 * How the body of the answer is framed. `none`: HEAD, 204, 304 and 1xx; `close`: by the end of the connection, for
 * HTTP/1.0.
 */
type ResponseMode = "unsent" | "none" | "length" | "chunked" | "close" | "tunnel" | "sent";

export class ResponseEncoder {
  readonly #output: SocketOutput;
  readonly #bytes: Http1StreamBytes;
  readonly #enableTrailers: boolean;
  #mode: ResponseMode = "unsent";
  #isHead = false;
  #isHttp10 = false;
  /**
   * Another request may follow the answer. Told to the client in the head; what comes later still ends the connection.
   */
  keepAlive = true;

  constructor(output: SocketOutput, bytes: Http1StreamBytes, enableTrailers: boolean) {
    this.#output = output;
    this.#bytes = bytes;
    this.#enableTrailers = enableTrailers;
  }

  /** Begins with the answer to another request. */
  start(isHead: boolean, isHttp10: boolean, keepAlive: boolean): void {
    this.#mode = "unsent";
    this.#isHead = isHead;
    this.#isHttp10 = isHttp10;
    this.keepAlive = keepAlive;
    this.#bytes.begin();
  }

  get isUnsent(): boolean {
    return this.#mode === "unsent";
  }

  get isTunnel(): boolean {
    return this.#mode === "tunnel";
  }

  /** Only the end of the connection says that the body is complete. */
  get endsByClose(): boolean {
    return this.#mode === "close";
  }

  /** The head that follows turns the connection into a tunnel. */
  startTunnel(): void {
    this.#mode = "tunnel";
  }

  writeInformational(status: number, headers: HeaderMap): void {
    if (this.#isHttp10 || this.#mode !== "unsent") return;
    const lines = fieldLines(headers.entries);
    this.#bytes.headerBytesSent += lines.length;
    this.#output.writeText(`${statusLine(status)}${lines}\r\n`);
  }

  writeHead(head: ResponseHead, endStream: boolean): void {
    const status = head.status;
    const entries = head.headers.entries;
    const firstLine = statusLine(status);
    let text = firstLine;
    let hasLength = false;
    for (let index = 0; index < entries.length; index += 2) {
      const name = entries[index]!;
      if (name === "content-length") hasLength = true;
      text += `${name}: ${entries[index + 1]!}\r\n`;
    }
    if (this.#mode === "tunnel") {
      if (head.upgrade !== undefined) text += `connection: upgrade\r\nupgrade: ${head.upgrade}\r\n`;
      this.#bytes.headerBytesSent += text.length - firstLine.length;
      this.#output.writeText(`${text}\r\n`);
      return;
    }
    const mode = this.#modeFor(status, hasLength, endStream);
    this.#mode = mode;
    if (mode === "chunked" || (this.#isHead && !hasLength && !this.#isHttp10 && mayHaveBody(status)))
      text += "transfer-encoding: chunked\r\n";
    else if (endStream && mode === "length" && !hasLength) text += "content-length: 0\r\n";
    if (!this.keepAlive) text += "connection: close\r\n";
    else if (this.#isHttp10) text += "connection: keep-alive\r\n";
    this.#bytes.headerBytesSent += text.length - firstLine.length;
    this.#output.writeText(`${text}\r\n`);
  }

  #modeFor(status: number, hasLength: boolean, endStream: boolean): ResponseMode {
    if (this.#isHead || !mayHaveBody(status)) return "none";
    if (hasLength || endStream) return "length";
    if (!this.#isHttp10) return "chunked";
    this.keepAlive = false;
    return "close";
  }

  writeData(chunk: Buffer, endStream: boolean): void {
    if (this.#mode === "chunked") {
      this.#output.writeChunk(chunk);
      if (endStream) this.#output.writeText("0\r\n\r\n");
    } else if (this.#mode !== "none") {
      this.#output.writeBody(chunk);
    }
  }

  writeTrailers(trailers: HeaderMap): void {
    if (this.#mode !== "chunked") return;
    const lines = this.#enableTrailers ? fieldLines(trailers.entries) : "";
    this.#bytes.headerBytesSent += lines.length;
    this.#output.writeText(`0\r\n${lines}\r\n`);
  }

  /** The answer is complete. */
  end(): void {
    this.#mode = "sent";
  }
}
