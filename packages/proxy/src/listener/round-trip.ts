// How long a client's packets and their acknowledgements take, as the kernel knows it, where a log tells it.
import type { Socket } from "node:net";
import { roundTripMicros } from "@tulle/capture";
import { asked } from "../http/asked-facts.ts";

/** libuv's handle of a connection, which goes from one socket object to the next; closed, its number is -1. */
interface Handle {
  readonly fd?: number;
}

export class RoundTrip {
  readonly #handle: Handle | undefined;
  #lastMs: number | undefined = undefined;

  constructor(socket: Socket) {
    this.#handle = (socket as unknown as { readonly _handle: Handle | null })._handle ?? undefined;
    // The handshake has told it: who only hears of the connection's end knows as much.
    if (asked.roundTrips) this.lastMs();
  }

  /** In whole milliseconds; of a connection that is over, as it was known last. */
  lastMs(): number | undefined {
    const descriptor = this.#handle?.fd ?? -1;
    const micros = descriptor < 0 ? undefined : roundTripMicros(descriptor);
    if (micros !== undefined) this.#lastMs = Math.floor(micros / 1000);
    return this.#lastMs;
  }
}
