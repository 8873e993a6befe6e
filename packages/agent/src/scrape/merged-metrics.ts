// The page of port 15020: metrics of the proxy, of the agent and of the application as one exposition. What the
// application does costs a counter, and never the metrics of the others.
import type { IncomingMessage } from "node:http";
import {
  type Counter,
  type ExpositionFormat,
  expositionFormat,
  expositionTypes,
  type Logger,
  MetricRegistry,
  ProcessMetrics,
  SeldomWarnings,
} from "@tulle/telemetry";
import { familyText, parseExposition } from "@tulle/telemetry/parse-exposition";
import { joined, runInSlices } from "@tulle/timing";
import type { RunningDataPlane } from "../data-plane/data-plane.ts";
import type { ApplicationPage } from "../settings.ts";
import { askApplication } from "./application-metrics.ts";

export interface MergedMetricsOptions {
  readonly application: ApplicationPage | undefined;
  /** Undefined while there is none yet. */
  readonly dataPlane: () => RunningDataPlane | undefined;
  /** Those of the workload's identity and of its name server, without an end. */
  readonly ownMetrics: (format: ExpositionFormat) => string;
  readonly log: Logger;
}

export interface MetricsPage {
  readonly contentType: string;
  readonly text: string;
}

/** Anybody may ask, and each asks the application: beyond this it is left out. */
const maxAsking = 4;
/**
 * By these a roll-out counts which version's requests fail (`control-plane/src/rollouts/traffic-counts.ts`). A proxy
 * without requests does not have them yet, and a stock Envoy only the last two: an application must not tell them of
 * itself.
 */
const ofProxiesAlone: ReadonlySet<string> = new Set([
  "istio_requests",
  "istio_request_duration_milliseconds",
  "envoy_cluster_upstream_rq",
  "envoy_cluster_upstream_rq_time",
]);

export class MergedMetrics {
  readonly #options: MergedMetricsOptions;
  readonly #registry = new MetricRegistry();
  readonly #process: ProcessMetrics;
  readonly #scrapes: Counter;
  readonly #warnings: SeldomWarnings;
  #asking = 0;

  constructor(options: MergedMetricsOptions) {
    this.#options = options;
    // The application's own are `process_*`.
    this.#process = new ProcessMetrics(this.#registry, "istio_agent_");
    this.#scrapes = this.#registry.counter({ name: "istio_agent_scrapes_total", help: "Scrapes of this page." });
    for (const type of ["envoy", "application"] as const) this.#failures(type);
    for (const reason of ["ours", "duplicate"] as const) this.#dropped(reason);
    this.#warnings = new SeldomWarnings(options.log);
  }

  async page(headers: IncomingMessage["headers"]): Promise<MetricsPage> {
    this.#scrapes.increment();
    const format = expositionFormat(headers.accept);
    // At the same time as the proxy, whose metrics it must not hold up.
    const asked = this.#application(headers);
    const dataPlane = this.#options.dataPlane();
    const ofProxy = await (dataPlane && proxyMetrics(dataPlane, format));
    if (dataPlane !== undefined && ofProxy === undefined) this.#failures("envoy").increment();
    const answer = await asked;
    const ours = `${ofProxy ?? ""}${this.#options.ownMetrics(format)}`;
    const added = answer === undefined ? "" : await this.#added(answer, format, ours);
    // Last, so that what the application has cost is counted.
    const own = await this.#own(format);
    const end = format === "openmetrics" ? "# EOF\n" : "";
    return { contentType: expositionTypes[format], text: `${ours}${own}${added}${end}` };
  }

  async #own(format: ExpositionFormat): Promise<string> {
    this.#process.refresh();
    // The registry's own, which the proxy has too.
    const accepts = ({ name }: { readonly name: string }): boolean => name.includes("_agent_");
    return runInSlices(joined(this.#registry.pieces({ format, accepts, isPart: true })));
  }

  async #application(headers: IncomingMessage["headers"]) {
    const { application } = this.#options;
    if (application === undefined) return undefined;
    if (this.#asking >= maxAsking) {
      this.#failed(`${maxAsking} scrapes ask it already`);
      return undefined;
    }
    this.#asking += 1;
    try {
      return await askApplication(application, headers);
    } catch (error) {
      this.#failed((error as Error).message);
      return undefined;
    } finally {
      this.#asking -= 1;
    }
  }

  async #added(
    { isOpenMetrics, text }: { readonly isOpenMetrics: boolean; readonly text: string },
    to: ExpositionFormat,
    ours: string,
  ): Promise<string> {
    const from = isOpenMetrics ? "openmetrics" : "prometheus";
    try {
      if (isOpenMetrics && to !== "openmetrics") throw new Error("it answered OpenMetrics, which was not asked for");
      const { families, duplicates } = await runInSlices(parseExposition(text, from));
      this.#dropped("duplicate").add(duplicates);
      const taken = familiesIn(`${ours}${await this.#own(to)}`).union(ofProxiesAlone);
      const kept = [...families.values()].filter(({ name, samples }) => {
        const isOurs = taken.has(bareName(name));
        if (isOurs) this.#dropped("ours").add(samples.size);
        return !isOurs;
      });
      return kept.map((family) => familyText(family, from, to)).join("");
    } catch (error) {
      this.#failed((error as Error).message);
      return "";
    }
  }

  #failed(reason: string): void {
    this.#failures("application").increment();
    this.#warnings.tell("application", "the application's metrics could not be read", { reason });
  }

  #failures(type: "envoy" | "application"): Counter {
    const help = "Scrapes without the metrics of the proxy (envoy) or of the application.";
    return this.#registry.counter({ name: "istio_agent_scrape_failures_total", help, labels: { type } });
  }

  #dropped(reason: "ours" | "duplicate"): Counter {
    const help = "The application's samples that were left out: under a name of a proxy's, or written twice.";
    return this.#registry.counter({ name: "tulle_agent_dropped_samples_total", help, labels: { reason } });
  }
}

/** Undefined where it does not answer, or not well. */
async function proxyMetrics(dataPlane: RunningDataPlane, to: ExpositionFormat): Promise<string | undefined> {
  try {
    const answer = await dataPlane.metrics(to);
    if (answer === undefined || answer.format === to) return answer?.text;
    const { families } = await runInSlices(parseExposition(answer.text, answer.format));
    return [...families.values()].map((family) => familyText(family, answer.format, to)).join("");
  } catch {
    return undefined;
  }
}

/**
 * The same family has `_total` in one format and not in the other, and a sample without a type may be called as one of
 * a histogram or summary is.
 */
function bareName(name: string): string {
  return name.replace(/_(?:total|bucket|sum|count|created)$/, "");
}

function familiesIn(text: string): Set<string> {
  return new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => bareName(name)));
}
