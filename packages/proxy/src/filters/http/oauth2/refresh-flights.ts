// One refresh at a time for each refresh token: requests of one page come together, and an authorization server that
// rotates refresh tokens takes a second use for a theft (RFC 9700 §4.14.2). What a refresh brought is remembered for a
// moment, for requests that left the browser before it had its new cookies.
import { hash } from "node:crypto";
import type { DataPath } from "../../../worker/data-path.ts";
import type { OAuth2Config } from "./oauth2-config.ts";
import { refreshTokens, type TokenResult } from "./token-client.ts";

/** How long an old cookie may still come after its refresh. */
const graceMs = 10_000;
/** Refreshes under way or remembered; beyond it the oldest remembered one is forgotten. */
const maxFlights = 10_000;

interface Flight {
  result: TokenResult | undefined;
  endedMs: number;
  readonly waiting: Set<(result: TokenResult) => void>;
}

export class RefreshFlights {
  readonly #config: OAuth2Config;
  readonly #flights = new Map<string, Flight>();

  constructor(config: OAuth2Config) {
    this.#config = config;
  }

  /** `onResult` comes later, never within this call, unless the returned function was called before. */
  join(refreshToken: string, dataPath: DataPath, onResult: (result: TokenResult) => void): () => void {
    const key = hash("sha256", refreshToken, "base64url");
    const nowMs = dataPath.clock.monotonicMs();
    let flight = this.#flights.get(key);
    if (flight?.result !== undefined && nowMs - flight.endedMs > graceMs) flight = undefined;
    if (flight === undefined) flight = this.#start(key, refreshToken, dataPath);
    const { waiting } = flight;
    waiting.add(onResult);
    if (flight.result !== undefined) {
      queueMicrotask(() => dataPath.turn.run(() => this.#deliver(flight)));
    }
    return () => waiting.delete(onResult);
  }

  #start(key: string, refreshToken: string, dataPath: DataPath): Flight {
    const flight: Flight = { result: undefined, endedMs: 0, waiting: new Set() };
    this.#flights.delete(key);
    this.#forgetOld(dataPath.clock.monotonicMs());
    this.#flights.set(key, flight);
    // The flight goes on when nobody waits any more: the refresh token may have been used up already.
    refreshTokens(this.#config, refreshToken, dataPath, (result) => {
      flight.result = result;
      flight.endedMs = dataPath.clock.monotonicMs();
      // A failure is not remembered: the next request may have better luck.
      if (!result.ok) this.#flights.delete(key);
      this.#deliver(flight);
    });
    return flight;
  }

  #deliver({ waiting, result }: Flight): void {
    const waiters = [...waiting];
    waiting.clear();
    for (const waiter of waiters) waiter(result!);
  }

  #forgetOld(nowMs: number): void {
    for (const [key, { result, endedMs }] of this.#flights) {
      if (result !== undefined && (nowMs - endedMs > graceMs || this.#flights.size >= maxFlights)) {
        this.#flights.delete(key);
      } else if (this.#flights.size < maxFlights) {
        return;
      }
    }
  }
}
