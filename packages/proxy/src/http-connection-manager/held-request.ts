// What has come of a request behind its head while a filter holds it, under a limit above which the client is paused.
// Made when there is something to keep, as few requests ever wait.
import type { HttpStream } from "../http/filter.ts";
import { BodyBlocks } from "../http/body-blocks.ts";
import type { HeaderMap } from "../http/header-map.ts";

export class HeldRequest {
  readonly #client: Pick<HttpStream, "pauseRequest" | "resumeRequest">;
  /** Undefined: nothing has come, not even the request's end. */
  #body: BodyBlocks | undefined = undefined;
  /** What a filter that looks at the body has asked for. */
  #raisedLimitBytes = 0;
  #isPaused = false;
  trailers: HeaderMap | undefined = undefined;

  constructor(client: Pick<HttpStream, "pauseRequest" | "resumeRequest">) {
    this.#client = client;
  }

  get chunks(): readonly Buffer[] {
    return this.#body?.all ?? [];
  }

  get bytes(): number {
    return this.#body?.bytes ?? 0;
  }

  /** `chunk` is a view on a read buffer. */
  keepData(chunk: Buffer): void {
    (this.#body ??= new BodyBlocks()).keep(chunk);
  }

  keepTrailers(trailers: HeaderMap): void {
    this.#body ??= new BodyBlocks();
    this.trailers = trailers;
  }

  /** So much may wait, if that is more than the stream's own limit. */
  raiseLimit(bytes: number): void {
    this.#raisedLimitBytes = bytes;
  }

  pauseClientAbove(limitBytes: number): void {
    if (this.#isPaused || this.bytes <= Math.max(limitBytes, this.#raisedLimitBytes)) return;
    this.#isPaused = true;
    this.#client.pauseRequest();
  }

  /** Hands out what has come, to be kept no longer; undefined when nothing has. */
  release(): readonly Buffer[] | undefined {
    const chunks = this.#body?.all;
    if (chunks === undefined) return undefined;
    this.#body = undefined;
    if (this.#isPaused) this.#client.resumeRequest();
    this.#isPaused = false;
    return chunks;
  }
}
