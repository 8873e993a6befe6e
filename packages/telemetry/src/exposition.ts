// The registry as Prometheus reads it: text 0.0.4 or OpenMetrics 1.0. Pieces come one series at a time, so that whoever
// writes them can let requests in between.
import { type Exemplar, Histogram, type Metric, type Labels, type MetricFamily, type Series } from "./metric.ts";

export type ExpositionFormat = "prometheus" | "openmetrics";

export const expositionTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** What an Accept header asks for (RFC 9110 §12.5.1): OpenMetrics unless text is preferred to it. */
export function expositionFormat(accept: string | undefined): ExpositionFormat {
  const weightOf = (type: string): number => {
    const weights = (accept ?? "").split(",").flatMap((range) => {
      const [name = "", ...parameters] = range.split(";").map((word) => word.trim().toLowerCase());
      if (name !== type) return [];
      const weight = parameters.find((word) => word.startsWith("q="));
      return [weight === undefined ? 1 : Number(weight.slice(2))];
    });
    return Math.max(0, ...weights);
  };
  const openMetrics = weightOf("application/openmetrics-text");
  return openMetrics > 0 && openMetrics >= weightOf("text/plain") ? "openmetrics" : "prometheus";
}

/** How the buckets of histograms are shown (Envoy: `histogram_buckets`). */
export type BucketMode = "cumulative" | "summary";

export interface ExpositionOptions {
  readonly format?: ExpositionFormat;
  readonly accepts?: (series: Series) => boolean;
  readonly buckets?: BucketMode;
  /** Words become gauges of 0 with the word as a label (Envoy: `text_readouts`). */
  readonly hasTexts?: boolean;
  /** More follows: without OpenMetrics' end. */
  readonly isPart?: boolean;
  /** See `MetricRegistryOptions`. */
  readonly shownLabels?: ReadonlyMap<string, string>;
}

/** The value below which `percent` of the recorded ones lie, interpolated within its bucket. */
export function quantile(histogram: Histogram, percent: number): number {
  const rank = (histogram.count * percent) / 100;
  let below = 0;
  for (const [index, count] of histogram.bucketCounts.entries()) {
    if (count > 0 && below + count >= rank) {
      const lower = index === 0 ? 0 : histogram.bounds[index - 1]!;
      const upper = histogram.bounds[index] ?? lower;
      return lower + (upper - lower) * ((rank - below) / count);
    }
    below += count;
  }
  return 0;
}

/** Envoy's quantiles of histograms. */
export const shownQuantiles = [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100] as const;

export function* exposition(families: Iterable<MetricFamily>, options: ExpositionOptions): Generator<string> {
  const { accepts = () => true, hasTexts = false } = options;
  const sorted = [...families].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const family of sorted) {
    if (family.type === "text" && !hasTexts) continue;
    let head: string | undefined = familyHead(family, options);
    for (const series of family.series.values()) {
      if (!accepts(series)) continue;
      const text = seriesText(series, options);
      yield head === undefined ? text : head + text;
      head = undefined;
    }
  }
  if (options.format === "openmetrics" && options.isPart !== true) yield "# EOF\n";
}

/** OpenMetrics: a unit is what the family's name ends with. */
const unitOfName = /_(bytes|milliseconds|seconds)$/;

function familyHead({ name, type, help }: MetricFamily, { format, buckets }: ExpositionOptions): string {
  const isOpen = format === "openmetrics";
  const shownType = type === "text" ? "gauge" : type === "histogram" && buckets === "summary" ? "summary" : type;
  const family = isOpen ? openMetricsFamily({ name, type: shownType }) : { name, type: shownType };
  const unit = isOpen ? unitOfName.exec(family.name)?.[1] : undefined;
  return (
    (help === "" ? "" : `# HELP ${family.name} ${isOpen ? escapeLabel(help) : escapeHelp(help)}\n`) +
    `# TYPE ${family.name} ${family.type}\n` +
    (unit === undefined ? "" : `# UNIT ${family.name} ${unit}\n`)
  );
}

/**
 * A family of the text format as OpenMetrics names and types it. `_total` belongs to a counter's samples there, and not
 * to the family. Counters without it, such as Envoy's, are of unknown type: renamed they would be lost to every board
 * and rule that asks for them.
 */
export function openMetricsFamily({ name, type }: { readonly name: string; readonly type: string }): {
  readonly name: string;
  readonly type: string;
} {
  if (type === "untyped") return { name, type: "unknown" };
  if (type !== "counter") return { name, type };
  return name.endsWith("_total") ? { name: name.slice(0, -"_total".length), type } : { name, type: "unknown" };
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return /["\\\n]/.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text;
}

const labelTexts = new WeakMap<Labels, string>();

/** Without braces; kept as long as the labels, which never change. */
function labelText(labels: Labels, shown: ReadonlyMap<string, string> | undefined): string {
  let text = labelTexts.get(labels);
  if (text === undefined) {
    text = Object.entries(labels)
      .map(([name, value]) => `${shown?.get(name) ?? name}="${escapeLabel(value)}"`)
      .join(",");
    labelTexts.set(labels, text);
  }
  return text;
}

function seriesText(series: Series, options: ExpositionOptions): string {
  const { name, metric } = series;
  const labels = labelText(series.labels, options.shownLabels);
  const own = labels === "" ? "" : `{${labels}}`;
  const before = labels === "" ? "{" : `{${labels},`;
  if (metric instanceof Histogram) return histogramText(name, metric, own, before, options);
  if (series.type === "text") return `${name}${before}text_value="${escapeLabel(String(metric.value))}"} 0\n`;
  const exemplar = options.format === "openmetrics" && name.endsWith("_total") ? exemplarOf(metric) : undefined;
  return `${name}${own} ${metric.value}${exemplarText(exemplar)}\n`;
}

function exemplarOf(metric: Metric): Exemplar | undefined {
  return "exemplar" in metric ? metric.exemplar : undefined;
}

function histogramText(
  name: string,
  histogram: Histogram,
  own: string,
  before: string,
  options: ExpositionOptions,
): string {
  let text = "";
  if (options.buckets === "summary") {
    for (const percent of histogram.count === 0 ? [] : shownQuantiles) {
      text += `${name}${before}quantile="${percent / 100}"} ${quantile(histogram, percent)}\n`;
    }
  } else {
    const { bounds, bucketCounts } = histogram;
    const exemplars = options.format === "openmetrics" ? histogram.exemplars : undefined;
    const start = `${name}_bucket${before}le="`;
    let cumulative = 0;
    for (let index = 0; index < bounds.length; index += 1) {
      cumulative += bucketCounts[index]!;
      text += `${start}${bounds[index]}"} ${cumulative}${exemplarText(exemplars?.[index])}\n`;
    }
    text += `${start}+Inf"} ${histogram.count}${exemplarText(exemplars?.[bounds.length])}\n`;
  }
  return `${text}${name}_sum${own} ${histogram.sum}\n${name}_count${own} ${histogram.count}\n`;
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return "";
  return ` # {trace_id="${exemplar.traceId}"} ${exemplar.value} ${exemplar.atMs / 1000}`;
}
