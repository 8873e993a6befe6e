// What the agent needs of a proxy, whichever it is: it runs until it is drained, or ends by itself.
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import type { DrainTimes } from "@tulle/proxy";
import type { ExpositionFormat, Logging } from "@tulle/telemetry";
import type { AgentSettings } from "../settings.ts";

export interface RunningDataPlane {
  /** Resolves with an exit code when the proxy has ended, by itself or after `stop`. */
  readonly ended: Promise<number>;
  /** Whether it has its first clusters and listeners, and does not drain (Envoy: `/ready` says LIVE). */
  isReady(): Promise<boolean>;
  /** In that format if it knows it; undefined = it does not answer. */
  metrics(format: ExpositionFormat): Promise<ProxyMetrics | undefined>;
  /** Requests and connections that the workload has been sent so far; undefined = it does not answer. */
  taken(): Promise<number | undefined>;
  /** Asks clients to leave, and ends when they have. */
  stop(times: DrainTimes): Promise<void>;
}

/** Envoy's names of what is sent to the workload, as the control plane calls them. */
export const takenStats =
  /^(?:http\.(?:inbound_|InboundPassthroughCluster).*\.downstream_rq_total|tcp\.(?:inbound\||InboundPassthroughCluster).*\.downstream_cx_total)$/;

export interface ProxyMetrics {
  readonly format: ExpositionFormat;
  /** Without OpenMetrics' end. */
  readonly text: string;
}

export interface DataPlaneOptions {
  readonly settings: AgentSettings;
  readonly bootstrap: Bootstrap;
  /** The same document as a file. */
  readonly bootstrapPath: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logging: Logging;
}

export type StartDataPlane = (options: DataPlaneOptions) => Promise<RunningDataPlane>;
