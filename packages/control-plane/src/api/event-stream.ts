// An answer of events: one JSON value a line, until one of both ends it.
import type { ServerResponse } from "node:http";

/** A reader that is slower than the mesh changes is cut off at this backlog; it comes back and lists anew. */
const maxBacklogBytes = 16 * 1024 * 1024;

export class EventStream<Event> {
  readonly #response: ServerResponse;
  readonly #contentType: string;

  constructor(response: ServerResponse, contentType: string) {
    this.#response = response;
    this.#contentType = contentType;
  }

  /** The first events begin the answer. */
  send(events: readonly Event[]): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { "content-type": this.#contentType });
    const text = events.map((event) => `${JSON.stringify(event)}\n`).join("");
    if (text === "") return;
    if (this.#response.writableLength + text.length > maxBacklogBytes) this.#response.destroy();
    else this.#response.write(text);
  }

  end(): void {
    this.#response.end();
  }

  onClose(listener: () => void): void {
    this.#response.on("close", listener);
  }
}
