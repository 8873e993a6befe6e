// Keeps descriptors back for what an accepted connection will need: its way to a host, the admin pages, a certificate's
// file. Without it libuv would close clients in silence once there is none left, and requests of those who came before
// would fail.
import { readFileSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { type Logger, Trouble } from "@tulle/telemetry";

/**
 * For upstream connections of those who are connected, for the admin pages and for files; of small limits an eighth.
 */
const mostReserved = 64;
/** Somebody who leaves makes place for one: this long without a refusal is the end of the shortage. */
const calmAfterMs = 10_000;

/**
 * How many descriptors this process may have open (Linux); Node raises the soft limit to the hard one when it starts.
 */
export function descriptorLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}

/** Node keeps it beside its documented fields; on systems without one, nothing is refused for it. */
export function descriptorOf(socket: Socket | Server): number {
  return (socket as unknown as { readonly _handle: { readonly fd?: number } | null })._handle?.fd ?? -1;
}

export class DescriptorReserve {
  readonly #limit: number;
  readonly #firstReserved: number;
  readonly #trouble: Trouble;
  #lastRefusedMs = 0;

  constructor(log: Pick<Logger, "error" | "info">, limit: number) {
    this.#limit = limit;
    this.#firstReserved = limit - Math.min(mostReserved, Math.ceil(limit / 8));
    this.#trouble = new Trouble(log);
  }

  /** The kernel gives the lowest number that is free: all below that of a new connection are in use. */
  refuses(descriptor: number, nowMs: number): boolean {
    if (descriptor >= this.#firstReserved) {
      this.#lastRefusedMs = nowMs;
      this.#trouble.begin("connections are refused: too many files are open", { limit: this.#limit });
      return true;
    }
    if (nowMs - this.#lastRefusedMs >= calmAfterMs) this.#trouble.end("connections are accepted again");
    return false;
  }
}
