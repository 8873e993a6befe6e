// What every part of one worker's data path shares: the clock, its timers, randomness and the loggers by Envoy's names.
// One instance a worker, made once; listeners, connections and pools hold it.
import type { Logger, Logging } from "@tulle/telemetry";
import { BufferPool } from "./buffer-pool.ts";
import { OverloadState } from "./overload-state.ts";
import type { OwnUserHosts } from "../own-user/own-user-hosts.ts";
import { type Clock, systemClock } from "./clock.ts";
import { TimerWheel } from "./timer-wheel.ts";
import { Turn } from "./turn.ts";

/** Bytes that one read of a socket takes at most. */
const readBufferBytes = 65_536;

const keptViewBytes = 4096;

export interface DataPathOptions {
  readonly logging: Logging;
  readonly clock?: Clock;
  /** In [0, 1): weighted clusters, jitter. */
  readonly random?: () => number;
  /** Hosts at which only programs of this process's own user are talked to. */
  readonly ownUserHosts?: OwnUserHosts | undefined;
}

export class DataPath {
  readonly clock: Clock;
  readonly turn: Turn;
  readonly timers: TimerWheel;
  readonly buffers = new BufferPool();
  /** Every socket reads into it; what a read brought is consumed or copied before the next one begins. */
  readonly readBuffer: Buffer = Buffer.allocUnsafeSlow(readBufferBytes);
  /** Views on the buffer's beginning by their length: requests and answers of one size come again and again. */
  readonly #readViews: (Buffer | undefined)[] = Array.from({ length: keptViewBytes + 1 });
  readonly random: () => number;
  /** What overload asks for; the overload manager writes it. */
  readonly overload = new OverloadState();
  readonly ownUserHosts: OwnUserHosts | undefined;
  readonly httpLog: Logger;
  readonly routerLog: Logger;
  readonly poolLog: Logger;
  readonly connectionLog: Logger;
  readonly filterLog: Logger;
  readonly upstreamLog: Logger;

  constructor(options: DataPathOptions) {
    this.clock = options.clock ?? systemClock;
    this.turn = new Turn(this.clock);
    this.timers = new TimerWheel(this.clock, this.turn);
    this.random = options.random ?? Math.random;
    this.httpLog = options.logging.logger("http");
    this.routerLog = options.logging.logger("router");
    this.poolLog = options.logging.logger("pool");
    this.connectionLog = options.logging.logger("connection");
    this.filterLog = options.logging.logger("filter");
    this.upstreamLog = options.logging.logger("upstream");
    this.ownUserHosts = options.ownUserHosts;
  }

  /** What a read of so many bytes has left in the buffer. */
  readView(bytes: number): Buffer {
    if (bytes > keptViewBytes) return this.readBuffer.subarray(0, bytes);
    return (this.#readViews[bytes] ??= this.readBuffer.subarray(0, bytes));
  }
}
