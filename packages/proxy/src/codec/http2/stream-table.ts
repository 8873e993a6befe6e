// The streams of one connection by their numbers, and what is remembered of those that are over (RFC 9113 §5.1).
import type { StreamResetReason } from "../stream-codec.ts";
import { maxInteger } from "./frame.ts";

/** Enough to know what a peer may have sent before it knew that we reset the stream. */
const rememberedResets = 128;

export interface NumberedStream {
  readonly id: number;
  sendWindowBytes: number;
  end(reason: StreamResetReason): void;
}

export class StreamTable<Stream extends NumberedStream> {
  /** Of the ids that the peer opens. */
  readonly #peersParity: number;
  readonly #streams = new Map<number, Stream>();
  /** The one that was asked for last: its frames mostly come together. */
  #last: Stream | undefined = undefined;
  /** Ids that we have reset, in a ring: what was under way is let pass. */
  readonly #reset: number[] = [];
  #resetCount = 0;
  /** The highest id that the peer has opened. */
  lastPeerId = 0;
  /** The highest that we have opened. */
  #lastOwnId = 0;

  constructor(isServer: boolean) {
    this.#peersParity = isServer ? 1 : 0;
  }

  get size(): number {
    return this.#streams.size;
  }

  get(id: number): Stream | undefined {
    const last = this.#last;
    if (last !== undefined && last.id === id) return last;
    const found = this.#streams.get(id);
    if (found !== undefined) this.#last = found;
    return found;
  }

  add(stream: Stream): void {
    this.#streams.set(stream.id, stream);
    if (this.#isPeers(stream.id)) this.lastPeerId = stream.id;
    else this.#lastOwnId = stream.id;
  }

  delete(stream: Stream): boolean {
    if (this.#last === stream) this.#last = undefined;
    return this.#streams.delete(stream.id);
  }

  /** As they stand now: what is done with one may end it. */
  all(): readonly Stream[] {
    return Array.from(this.#streams.values());
  }

  /** Ends all streams; those above `lastId` alone where it is given. */
  end(reason: StreamResetReason, lastId = 0): void {
    for (const stream of this.all()) {
      if (stream.id > lastId) stream.end(reason);
    }
  }

  isIdle(id: number): boolean {
    return id > (this.#isPeers(id) ? this.lastPeerId : this.#lastOwnId);
  }

  rememberReset(id: number): void {
    this.#reset[this.#resetCount % rememberedResets] = id;
    this.#resetCount += 1;
  }

  wasReset(id: number): boolean {
    return this.#reset.includes(id);
  }

  /** The same, where some are forgotten already. */
  mayHaveBeenReset(id: number): boolean {
    return this.#resetCount > rememberedResets || this.wasReset(id);
  }

  /** Changes all send windows; false where one would be larger than there are numbers for. */
  widen(bytes: number): boolean {
    if (bytes === 0) return true;
    for (const stream of this.#streams.values()) {
      stream.sendWindowBytes += bytes;
      if (stream.sendWindowBytes > maxInteger) return false;
    }
    return true;
  }

  #isPeers(id: number): boolean {
    return (id & 1) === this.#peersParity;
  }
}
