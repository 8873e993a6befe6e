// `/stats` and `/stats/prometheus`: every counter, gauge and histogram under Envoy's names. Pages come in pieces,
// between which requests are served.
import type { IncomingHttpHeaders } from "node:http";
import {
  expositionFormat,
  expositionTypes,
  Histogram,
  type Metric,
  quantile,
  type Series,
  shownQuantiles,
  Text,
} from "@tulle/telemetry";
import { type NamedSeries, sortedSeries } from "./sorted-series.ts";
import { type AdminPage, type AdminResponse, type AdminTargets, parameter, text } from "./admin-page.ts";
import { compileRe2 } from "../cel/re2.ts";

type NameFilter = (name: string) => boolean;

function nameFilter(query: URLSearchParams): NameFilter | AdminResponse {
  const filter = parameter(query, "filter");
  if (filter === undefined) return () => true;
  const inverts = query.has("invert_filter");
  try {
    const regex = compileRe2(filter);
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

function quantileText(histogram: Histogram): string {
  if (histogram.count === 0) return "No recorded values";
  return shownQuantiles
    .map((percent) => {
      const value = Number(quantile(histogram, percent).toPrecision(6));
      return `P${percent}(${value},${value})`;
    })
    .join(" ");
}

/** Which values of `histogram_buckets` there are for which format; `summary` is Envoy's `none`, too. */
const bucketModes = ["cumulative", "disjoint", "summary", "none"] as const;
type BucketMode = (typeof bucketModes)[number];

function bucketMode(query: URLSearchParams): BucketMode | undefined | AdminResponse {
  const asked = parameter(query, "histogram_buckets");
  const mode = bucketModes.find((known) => known === asked);
  if (asked === undefined || mode !== undefined) return mode;
  return text("usage: /stats?histogram_buckets=(cumulative|disjoint|summary)\n", 400);
}

/** In Envoy's pairs: of the last interval, which is not told apart here, and of all time. */
function buckets({ bounds, bucketCounts }: Histogram, mode: "cumulative" | "disjoint"): readonly [number, number][] {
  let sum = 0;
  return bounds.map((bound, index) => {
    const own = bucketCounts[index]!;
    sum += own;
    return [bound, mode === "cumulative" ? sum : own];
  });
}

type Selection = ReturnType<typeof sortedSeries>;

function selected(query: URLSearchParams, { metrics }: AdminTargets, accepts: NameFilter): Selection {
  const usedOnly = query.has("usedonly");
  const type = parameter(query, "type") ?? "All";
  return sortedSeries(metrics.allSeries(), (series, name) => {
    if (!accepts(name) || (usedOnly && !wasUsed(series.metric))) return false;
    return type === "All" || type === typeNames[series.type];
  });
}

const typeNames: Readonly<Record<Series["type"], string>> = {
  counter: "Counters",
  gauge: "Gauges",
  histogram: "Histograms",
  text: "TextReadouts",
};

function histogramValue(histogram: Histogram, mode: BucketMode | undefined): string {
  if (histogram.count === 0 || (mode !== "cumulative" && mode !== "disjoint")) return quantileText(histogram);
  return buckets(histogram, mode)
    .map(([bound, count]) => `B${bound}(${count},${count})`)
    .join(" ");
}

function valueText(metric: Metric, mode: BucketMode | undefined): string {
  if (metric instanceof Histogram) return histogramValue(metric, mode);
  return metric instanceof Text ? `"${metric.value}"` : String(metric.value);
}

const isText = ({ metric }: NamedSeries): boolean => metric instanceof Text;
const isHistogram = ({ metric }: NamedSeries): boolean => metric instanceof Histogram;
const isPlain = (series: NamedSeries): boolean => !isText(series) && !isHistogram(series);

function* statsText(selection: Selection, mode: BucketMode | undefined): Generator<string> {
  const series = yield* selection;
  for (const isShown of [isText, isPlain, isHistogram]) {
    for (const each of series) if (isShown(each)) yield `${each.name}: ${valueText(each.metric, mode)}\n`;
  }
}

function* statsJson(selection: Selection, mode: BucketMode | undefined): Generator<string> {
  const series = yield* selection;
  let separator = "";
  yield '{"stats":[';
  for (const { name, metric } of series) {
    if (metric instanceof Histogram) continue;
    yield `${separator}${JSON.stringify({ name, value: metric.value })}`;
    separator = ",";
  }
  if (series.some(isHistogram)) {
    yield `${separator}{"histograms":`;
    yield* mode === "cumulative" || mode === "disjoint" ? bucketsJson(series, mode) : quantilesJson(series);
    yield "}";
  }
  yield "]}";
}

function* eachHistogram(
  series: readonly NamedSeries[],
  write: (name: string, histogram: Histogram) => unknown,
): Generator<string> {
  let separator = "[";
  for (const { name, metric } of series) {
    if (!(metric instanceof Histogram)) continue;
    yield `${separator}${JSON.stringify(write(name, metric))}`;
    separator = ",";
  }
  yield "]";
}

function* quantilesJson(series: readonly NamedSeries[]): Generator<string> {
  yield `{"supported_quantiles":${JSON.stringify(shownQuantiles)},"computed_quantiles":`;
  yield* eachHistogram(series, (name, histogram) => {
    const values = shownQuantiles.map((percent) => {
      const cumulative = histogram.count === 0 ? null : quantile(histogram, percent);
      return { cumulative, interval: cumulative };
    });
    return { name, values };
  });
  yield "}";
}

function bucketsJson(series: readonly NamedSeries[], mode: "cumulative" | "disjoint"): Generator<string> {
  return eachHistogram(series, (name, histogram) => ({
    name,
    buckets: buckets(histogram, mode).map(([bound, count]) => ({
      upper_bound: bound,
      interval: count,
      cumulative: count,
    })),
  }));
}

function prometheus(
  query: URLSearchParams,
  { metrics }: AdminTargets,
  accepts: NameFilter,
  headers: IncomingHttpHeaders,
): AdminResponse {
  const mode = bucketMode(query);
  if (typeof mode === "object") return mode;
  if (mode === "disjoint") return text("unsupported prometheus histogram bucket mode", 400);
  const usedOnly = query.has("usedonly");
  const isFiltered = usedOnly || parameter(query, "filter") !== undefined;
  const format = expositionFormat(headers.accept);
  const body = metrics.pieces({
    format,
    hasTexts: query.has("text_readouts"),
    ...((mode === "none" || mode === "summary") && { buckets: "summary" }),
    ...(isFiltered && {
      accepts: (series) => accepts(series.statName ?? series.name) && (!usedOnly || wasUsed(series.metric)),
    }),
  });
  return { status: 200, contentType: expositionTypes[format], body };
}

const parameters: AdminPage["parameters"] = [
  ["usedonly", "Only include stats that have been written by system since restart"],
  ["filter", "Regular expression (Google re2) for filtering stats"],
  ["invert_filter", "Invert the filter regex"],
  ["histogram_buckets", "Histogram bucket display mode; One of (cumulative, disjoint, summary)"],
  ["text_readouts", "Render text_readouts as new gaugues with value 0 (increases Prometheus data size)"],
];

export const statsPage: AdminPage = {
  path: "/stats",
  help: "print server stats",
  parameters: [
    ...parameters,
    ["format", "Format to use; One of (text, json, prometheus)"],
    ["type", "Stat types to include.; One of (All, Counters, Histograms, Gauges, TextReadouts)"],
  ],
  handle: (query, targets, headers) => {
    const accepts = nameFilter(query);
    if (typeof accepts !== "function") return accepts;
    const mode = bucketMode(query);
    if (typeof mode === "object") return mode;
    switch (parameter(query, "format") ?? "text") {
      case "text":
        return { ...text(""), body: statsText(selected(query, targets, accepts), mode) };
      case "json":
        return {
          status: 200,
          contentType: "application/json",
          body: statsJson(selected(query, targets, accepts), mode),
        };
      case "prometheus":
        return prometheus(query, targets, accepts, headers);
      default:
        return text("usage: /stats?format=(json|prometheus|text)\n\n", 400);
    }
  },
};

export const prometheusPage: AdminPage = {
  path: "/stats/prometheus",
  help: "print server stats in prometheus format",
  parameters,
  handle: (query, targets, headers) => {
    const accepts = nameFilter(query);
    return typeof accepts === "function" ? prometheus(query, targets, accepts, headers) : accepts;
  },
};
