// Connections that have not yet shown that they are worth a place. They are a few, for a short time, and the oldest makes way for
// one more: whoever holds many and says nothing keeps nobody out.
import type { Socket } from "node:net";

export interface NewcomerLimits {
  readonly maxCount: number;
  /** From the connection's begin to its admission; undefined where something else ends those that stay too long. */
  readonly lifeMs?: number;
}

interface Newcomer {
  readonly socket: Socket;
  readonly deadline: NodeJS.Timeout | undefined;
}

export class Newcomers {
  readonly #limits: NewcomerLimits;
  /** By remote address and port, the oldest first. */
  readonly #waiting = new Map<string, Newcomer>();

  constructor(limits: NewcomerLimits) {
    this.#limits = limits;
  }

  /** The connection is one of them until it is admitted, too old, or one too many. */
  add(socket: Socket): void {
    this.#makeRoom();
    const remote = remoteOf(socket);
    const { lifeMs } = this.#limits;
    const deadline = lifeMs === undefined ? undefined : setTimeout(() => socket.destroy(), lifeMs);
    const newcomer: Newcomer = { socket, deadline };
    this.#waiting.set(remote, newcomer);
    socket.on("close", () => {
      clearTimeout(deadline);
      // The client's port may have a new connection already.
      if (this.#waiting.get(remote) === newcomer) this.#waiting.delete(remote);
    });
  }

  /** The connection from there may stay. */
  admit(remote: string): void {
    clearTimeout(this.#waiting.get(remote)?.deadline);
    this.#waiting.delete(remote);
  }

  /** A connection is forgotten at once: its end comes only after all that have knocked together are taken. */
  #makeRoom(): void {
    for (const [remote, { socket }] of this.#waiting) {
      if (this.#waiting.size < this.#limits.maxCount) return;
      this.admit(remote);
      socket.destroy();
    }
  }
}

/** Address and port of the other end: all that a request or a gRPC call tells of its connection. */
export function remoteOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? "unknown"}:${remotePort ?? 0}`;
}
