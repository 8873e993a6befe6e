// Clients that xDS turns away: each is counted, and told of once in a while, since whoever is turned away may come back
// at once.
import type { Clock } from "@tulle/timing";
import type { Logger } from "@tulle/telemetry";
import type { Refusal } from "@tulle/xds";
import type { ControlPlaneMetrics } from "./metrics.ts";

/** From one line of a status to the next. */
const tellEveryMs = 1_000;

export class TurnedAway {
  readonly #metrics: Pick<ControlPlaneMetrics, "turnedAway">;
  readonly #log: Pick<Logger, "warning">;
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #told = new Map<string, { atMs: number; untold: number }>();

  constructor(
    metrics: Pick<ControlPlaneMetrics, "turnedAway">,
    log: Pick<Logger, "warning">,
    clock: Pick<Clock, "nowMs">,
  ) {
    this.#metrics = metrics;
    this.#log = log;
    this.#clock = clock;
  }

  note(peer: string, { status, details }: Refusal): void {
    this.#metrics.turnedAway(status).increment();
    const nowMs = this.#clock.nowMs();
    const last = this.#told.get(status);
    if (last !== undefined && nowMs - last.atMs < tellEveryMs) {
      last.untold += 1;
      return;
    }
    this.#told.set(status, { atMs: nowMs, untold: 0 });
    const others = last === undefined || last.untold === 0 ? {} : { othersSince: last.untold };
    this.#log.warning("a client was turned away", { peer, status, reason: details, ...others });
  }
}
