// What has come of a request behind its head while a filter holds it, under a limit above which the client is paused. Made when
// there is something to keep, as few requests ever wait.
import type { ResponseSender } from "../codec/stream-codec.ts";
import type { HeaderMap } from "../http/header-map.ts";

export class HeldRequest {
  readonly #sender: ResponseSender;
  /** Undefined: nothing has come, not even the request's end. */
  #chunks: Buffer[] | undefined = undefined;
  #bytes = 0;
  /** What a filter that looks at the body has asked for. */
  #raisedLimitBytes = 0;
  #isPaused = false;
  trailers: HeaderMap | undefined = undefined;

  constructor(sender: ResponseSender) {
    this.#sender = sender;
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks ?? [];
  }

  /** `chunk` is a view on a read buffer. */
  keepData(chunk: Buffer): void {
    (this.#chunks ??= []).push(Buffer.from(chunk));
    this.#bytes += chunk.length;
  }

  keepTrailers(trailers: HeaderMap): void {
    this.#chunks ??= [];
    this.trailers = trailers;
  }

  /** So much may wait, if that is more than the stream's own limit. */
  raiseLimit(bytes: number): void {
    this.#raisedLimitBytes = bytes;
  }

  pauseClientAbove(limitBytes: number): void {
    if (this.#isPaused || this.#bytes <= Math.max(limitBytes, this.#raisedLimitBytes)) return;
    this.#isPaused = true;
    this.#sender.pauseRequest();
  }

  /** Hands out what has come, to be kept no longer; undefined when nothing has. */
  release(): readonly Buffer[] | undefined {
    const chunks = this.#chunks;
    if (chunks === undefined) return undefined;
    this.#chunks = undefined;
    if (this.#isPaused) this.#sender.resumeRequest();
    this.#isPaused = false;
    this.#bytes = 0;
    return chunks;
  }
}
