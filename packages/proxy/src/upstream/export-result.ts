// What became of a batch at its collector, and who is told: counters tell of each, the log of the first that is lost.
import { fromBinary } from "@bufbuild/protobuf";
import { Trouble } from "@tulle/telemetry";
import { ExportTraceServiceResponseSchema } from "@tulle/xds/opentelemetry/proto/collector/trace/v1/trace_service_pb";
import type { DataPath } from "../worker/data-path.ts";

/** `sent`: the collector took it. `refused`: it answered otherwise. `failed`: there was no answer. */
export type ExportOutcome = "sent" | "refused" | "failed" | "no_cluster";

export interface ExportResult {
  readonly outcome: ExportOutcome;
  /** Of a batch that was sent: items that the collector says it has not kept, however many that are. */
  readonly rejectedItems: number;
  /** For the log; empty where nothing is lost. */
  readonly reason: string;
}

export function lostExport(outcome: Exclude<ExportOutcome, "sent">, reason: string): ExportResult {
  return { outcome, rejectedItems: 0, reason };
}

export const takenExport: ExportResult = { outcome: "sent", rejectedItems: 0, reason: "" };

/** Of a collector's own words. */
const maxReasonLength = 200;

/**
 * The answer of OTLP to spans, log records and metrics, whose messages are alike (opentelemetry-proto,
 * `Export…PartialSuccess`); undefined: it is none.
 */
export function readOtlpAnswer(bytes: Buffer): ExportResult | undefined {
  if (bytes.length === 0) return takenExport;
  try {
    const { partialSuccess } = fromBinary(ExportTraceServiceResponseSchema, bytes);
    const rejectedItems = Number(partialSuccess?.rejectedSpans ?? 0);
    if (rejectedItems <= 0) return takenExport;
    const words = partialSuccess!.errorMessage.slice(0, maxReasonLength);
    const reason = `the collector has rejected ${rejectedItems}${words === "" ? "" : `: ${words}`}`;
    return { outcome: "sent", rejectedItems, reason };
  } catch {
    return undefined;
  }
}

/** A collector that takes one batch and loses the next is one trouble, not two lines of the log for each. */
const wellAfterMs = 10_000;

/** Said once when items begin to be lost, and once when they have arrived for a while. */
export class ExportTrouble {
  readonly #items: string;
  readonly #clusterName: string;
  readonly #dataPath: DataPath;
  readonly #trouble: Trouble;
  #lastLossMs = -Infinity;

  /** `items` as the log calls them: `spans`. */
  constructor(items: string, clusterName: string, dataPath: DataPath) {
    this.#items = items;
    this.#clusterName = clusterName;
    this.#dataPath = dataPath;
    this.#trouble = new Trouble(dataPath.upstreamLog);
  }

  onResult({ outcome, rejectedItems, reason }: ExportResult): void {
    const { nowMs } = this.#dataPath.turn;
    const cluster = this.#clusterName;
    if (outcome !== "sent" || rejectedItems > 0) {
      this.#lastLossMs = nowMs;
      this.#trouble.begin(`${this.#items} are lost`, { cluster, reason });
    } else if (nowMs - this.#lastLossMs >= wellAfterMs) {
      this.#trouble.end(`${this.#items} arrive again`, { cluster });
    }
  }
}
