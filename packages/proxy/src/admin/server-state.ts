// The state that `/ready` and `/server_info` tell: how far the start is, and whether the proxy takes new work.
import type { ProxyBootstrap } from "../bootstrap/compile-bootstrap.ts";

/**
 * - `PRE_INITIALIZING`: clusters are awaited.
 * - `INITIALIZING`: clusters serve; listeners and routes are awaited.
 * - `LIVE`: everything that the start waits for is there.
 * - `DRAINING`: clients are asked to leave, or `/healthcheck/fail` was posted (Envoy: ServerInfo.State).
 */
export type ServerPhase = "PRE_INITIALIZING" | "INITIALIZING" | "LIVE" | "DRAINING";

export interface ServerStateOptions {
  readonly bootstrap: ProxyBootstrap;
  readonly commandLineOptions: Readonly<Record<string, string | number | boolean>>;
  readonly startedAtMs: number;
}

export class ServerState {
  readonly bootstrap: ProxyBootstrap;
  readonly commandLineOptions: Readonly<Record<string, string | number | boolean>>;
  readonly startedAtMs: number;
  #progress: "PRE_INITIALIZING" | "INITIALIZING" | "LIVE" = "PRE_INITIALIZING";
  #isDraining = false;
  /** Set by `/healthcheck/fail`, taken back by `/healthcheck/ok`. */
  healthCheckFails = false;
  initializedAtMs: number | undefined = undefined;

  constructor(options: ServerStateOptions) {
    this.bootstrap = options.bootstrap;
    this.commandLineOptions = options.commandLineOptions;
    this.startedAtMs = options.startedAtMs;
  }

  get phase(): ServerPhase {
    if (this.#progress !== "LIVE") return this.#progress;
    return this.#isDraining || this.healthCheckFails ? "DRAINING" : "LIVE";
  }

  clustersAreWarm(): void {
    if (this.#progress === "PRE_INITIALIZING") this.#progress = "INITIALIZING";
  }

  initialized(): void {
    this.#progress = "LIVE";
    this.initializedAtMs ??= Date.now();
  }

  drain(): void {
    this.#isDraining = true;
  }
}
