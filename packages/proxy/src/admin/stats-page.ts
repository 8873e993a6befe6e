// `/stats` and `/stats/prometheus`: every counter, gauge and histogram under Envoy's names.
import { Histogram, type Metric, type Series, Text } from "@tulle/telemetry";
import { RE2JS } from "re2js";
import { type AdminPage, type AdminResponse, type AdminTargets, parameter, text } from "./admin-page.ts";

/** Envoy's quantiles of histograms. */
const quantiles = [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100] as const;

type NameFilter = (name: string) => boolean;

function nameFilter(query: URLSearchParams): NameFilter | AdminResponse {
  const filter = parameter(query, "filter");
  if (filter === undefined) return () => true;
  const inverts = query.has("invert_filter");
  try {
    const regex = RE2JS.compile(filter);
    return (name) => regex.test(name) !== inverts;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace("error parsing regexp: ", "") : String(error);
    return text(`Invalid re2 regex: ${reason}`, 400);
  }
}

function wasUsed(metric: Metric): boolean {
  if (metric instanceof Histogram) return metric.count > 0;
  return metric instanceof Text ? metric.value !== "" : metric.value !== 0;
}

/** The value below which `percent` of the recorded ones lie, interpolated within its bucket. */
function quantile(histogram: Histogram, percent: number): number {
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

function quantileText(histogram: Histogram): string {
  if (histogram.count === 0) return "No recorded values";
  return quantiles
    .map((percent) => {
      const value = Number(quantile(histogram, percent).toPrecision(6));
      return `P${percent}(${value},${value})`;
    })
    .join(" ");
}

interface NamedSeries {
  readonly name: string;
  readonly metric: Metric;
}

function selected(query: URLSearchParams, { metrics }: AdminTargets, accepts: NameFilter): NamedSeries[] {
  const usedOnly = query.has("usedonly");
  const type = parameter(query, "type") ?? "All";
  const found: NamedSeries[] = [];
  for (const series of metrics.allSeries()) {
    const name = series.statName;
    if (name === undefined || !accepts(name) || (usedOnly && !wasUsed(series.metric))) continue;
    if (type !== "All" && type !== typeNames[series.type]) continue;
    found.push({ name, metric: series.metric });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

const typeNames: Readonly<Record<Series["type"], string>> = {
  counter: "Counters",
  gauge: "Gauges",
  histogram: "Histograms",
  text: "TextReadouts",
};

function valueText(metric: Metric): string {
  if (metric instanceof Histogram) return quantileText(metric);
  return metric instanceof Text ? `"${metric.value}"` : String(metric.value);
}

function statsText(series: readonly NamedSeries[]): AdminResponse {
  const texts = series.filter(({ metric }) => metric instanceof Text);
  const plain = series.filter(({ metric }) => !(metric instanceof Histogram) && !(metric instanceof Text));
  const histograms = series.filter(({ metric }) => metric instanceof Histogram);
  const lines = [...texts, ...plain, ...histograms].map(({ name, metric }) => {
    return `${name}: ${valueText(metric)}\n`;
  });
  return text(lines.join(""));
}

function statsJson(series: readonly NamedSeries[]): AdminResponse {
  const stats: unknown[] = [];
  const computed: unknown[] = [];
  for (const { name, metric } of series) {
    if (!(metric instanceof Histogram)) {
      stats.push({ name, value: metric.value });
      continue;
    }
    const values = quantiles.map((percent) => {
      const cumulative = metric.count === 0 ? null : quantile(metric, percent);
      return { cumulative, interval: cumulative };
    });
    computed.push({ name, values });
  }
  if (computed.length > 0) {
    stats.push({ histograms: { supported_quantiles: quantiles, computed_quantiles: computed } });
  }
  return { status: 200, contentType: "application/json", body: JSON.stringify({ stats }) };
}

function prometheus(query: URLSearchParams, { metrics }: AdminTargets, accepts: NameFilter): AdminResponse {
  const usedOnly = query.has("usedonly");
  const filter = parameter(query, "filter");
  const all = filter === undefined && !usedOnly;
  const body = all
    ? metrics.renderPrometheus()
    : metrics.renderPrometheus(
        (series) => accepts(series.statName ?? series.name) && (!usedOnly || wasUsed(series.metric)),
      );
  return { status: 200, contentType: "text/plain; version=0.0.4; charset=utf-8", body };
}

const parameters: AdminPage["parameters"] = [
  ["usedonly", "Only include stats that have been written by system since restart"],
  ["filter", "Regular expression (Google re2) for filtering stats"],
  ["invert_filter", "Invert the filter regex"],
];

export const statsPage: AdminPage = {
  path: "/stats",
  help: "print server stats",
  parameters: [
    ...parameters,
    ["format", "Format to use; One of (text, json, prometheus)"],
    ["type", "Stat types to include.; One of (All, Counters, Histograms, Gauges, TextReadouts)"],
  ],
  handle: (query, targets) => {
    const accepts = nameFilter(query);
    if (typeof accepts !== "function") return accepts;
    switch (parameter(query, "format") ?? "text") {
      case "text":
        return statsText(selected(query, targets, accepts));
      case "json":
        return statsJson(selected(query, targets, accepts));
      case "prometheus":
        return prometheus(query, targets, accepts);
      default:
        return text("usage: /stats?format=(json|prometheus|text)\n\n", 400);
    }
  },
};

export const prometheusPage: AdminPage = {
  path: "/stats/prometheus",
  help: "print server stats in prometheus format",
  parameters,
  handle: (query, targets) => {
    const accepts = nameFilter(query);
    return typeof accepts === "function" ? prometheus(query, targets, accepts) : accepts;
  },
};
