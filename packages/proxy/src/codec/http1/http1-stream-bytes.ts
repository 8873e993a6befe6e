// What the stream in hand of a connection of HTTP/1.1 takes on the wire: differences of what the connection counts
// anyway.
import type { StreamBytes } from "../../http/stream-bytes.ts";
import type { SocketOutput } from "../../worker/socket-output.ts";

export class Http1StreamBytes implements StreamBytes {
  readonly #connection: { readonly bytesReceived: number };
  readonly #output: SocketOutput;
  #sentBefore = 0;
  #receivedBefore = 0;
  /** Of what has come, what is not the stream's. */
  behindBytes = 0;
  headerBytesSent = 0;
  decompressedHeaderBytesReceived = 0;
  trailerBytesReceived = 0;

  constructor(connection: { readonly bytesReceived: number }, output: SocketOutput) {
    this.#connection = connection;
    this.#output = output;
  }

  /** The next stream is about to read the last `unreadBytes` of what has come. */
  beginReceiving(unreadBytes: number): void {
    this.#receivedBefore = this.#connection.bytesReceived - unreadBytes;
  }

  /** The next stream is there. */
  begin(): void {
    this.#sentBefore = this.#output.position;
    this.headerBytesSent = 0;
    this.decompressedHeaderBytesReceived = 0;
    this.trailerBytesReceived = 0;
  }

  get headerBytesReceived(): number {
    return this.decompressedHeaderBytesReceived + this.trailerBytesReceived;
  }

  get decompressedHeaderBytesSent(): number {
    return this.headerBytesSent;
  }

  get wireBytesSent(): number {
    return this.#output.position - this.#sentBefore;
  }

  get wireBytesReceived(): number {
    return this.#connection.bytesReceived - this.#receivedBefore - this.behindBytes;
  }
}
