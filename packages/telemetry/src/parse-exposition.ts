// Metrics as another program wrote them, taken apart into families: nothing is passed on that is not well formed, since
// Prometheus refuses a whole scrape for one bad line.
import { type ExpositionFormat, openMetricsFamily } from "./exposition.ts";

export interface MetricFamilyText {
  /** As TYPE and HELP name it. */
  readonly name: string;
  type: string;
  help: string | undefined;
  unit: string | undefined;
  /** By name and labels, so that none comes twice: the rest of the line. */
  readonly samples: Map<string, string>;
}

export interface ParsedExposition {
  readonly families: ReadonlyMap<string, MetricFamilyText>;
  /** Samples that were there already. */
  readonly duplicates: number;
}

const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
// Of each of these a text has one reading at the most: an application could stop its proxy with two.
const labels = String.raw`\{\s*(?:[a-zA-Z_][a-zA-Z0-9_]*\s*=\s*"(?:[^"\\\n]|\\.)*"\s*(?:,\s*|(?=\})))*\}`;
const number = String.raw`[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[iI]nf(?:inity)?|[nN]a[nN])`;
const sampleLine = new RegExp(`^(${name})(?:[ \\t]*(${labels}))?[ \\t]+(${number})(?:[ \\t]+(${number}))?[ \\t]*$`);
const openSampleLine = new RegExp(
  `^(${name})(${labels})? (${number})(?: (${number}))?( # ${labels} ${number}(?: ${number})?)?$`,
);
const aboutLine = new RegExp(`^# (HELP|TYPE|UNIT) (${name})(?: (.*))?$`);

/** What a family's samples may add to its name. */
const suffixes: Readonly<Record<string, readonly string[]>> = {
  counter: ["_total", "_created"],
  histogram: ["_bucket", "_sum", "_count", "_created"],
  gaugehistogram: ["_bucket", "_gsum", "_gcount"],
  summary: ["_sum", "_count", "_created"],
  info: ["_info"],
};

/**
 * Behind each line the work may pause (`runInSlices` of @tulle/timing).
 * @throws {Error} at the first line that is none, in words for a log
 */
export function* parseExposition(
  text: string,
  format: ExpositionFormat,
): Generator<undefined, ParsedExposition, undefined> {
  const families = new Map<string, MetricFamilyText>();
  const isOpen = format === "openmetrics";
  let duplicates = 0;
  let isEnded = false;
  for (const line of linesOf(text)) {
    yield;
    if (isEnded) throw new Error("something follows # EOF");
    if (line.startsWith("#")) {
      isEnded = isOpen && line === "# EOF";
      about(families, line);
      continue;
    }
    const match = (isOpen ? openSampleLine : sampleLine).exec(line);
    if (match === null) throw new Error(`no sample: ${JSON.stringify(line.slice(0, 80))}`);
    const [, sample = "", labelText = "", value = "", timestamp, exemplar = ""] = match;
    const { samples } = familyOf(families, sample);
    const key = sample + labelText;
    const time = timestamp === undefined || isOpen ? timestamp : String(Number(timestamp) / 1000);
    if (samples.has(key)) duplicates += 1;
    else samples.set(key, `${value}${time === undefined ? "" : ` ${time}`}${exemplar}`);
  }
  if (isOpen && !isEnded) throw new Error("it does not end with # EOF");
  return { families, duplicates };
}

function* linesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    const end = text.indexOf("\n", start);
    const line = text.slice(start, end < 0 ? undefined : end).trimEnd();
    if (line.trim() !== "") yield line;
    if (end < 0) return;
    start = end + 1;
  }
}

/** Other comments are for people. */
function about(families: Map<string, MetricFamilyText>, line: string): void {
  const [, what, family = "", text = ""] = aboutLine.exec(line) ?? [];
  if (what === undefined) return;
  const found = named(families, family);
  if (what === "HELP") found.help ??= text;
  else if (what === "UNIT") found.unit ??= text;
  else if (found.samples.size === 0) found.type = text.trim().toLowerCase();
}

function named(families: Map<string, MetricFamilyText>, family: string): MetricFamilyText {
  let found = families.get(family);
  if (found === undefined) {
    found = { name: family, type: "untyped", help: undefined, unit: undefined, samples: new Map() };
    families.set(family, found);
  }
  return found;
}

function familyOf(families: Map<string, MetricFamilyText>, sample: string): MetricFamilyText {
  const end = sample.lastIndexOf("_");
  const above = end < 0 ? undefined : families.get(sample.slice(0, end));
  const isPart = above !== undefined && (suffixes[above.type] ?? []).includes(sample.slice(end));
  return isPart ? above : named(families, sample);
}

/** Times are seconds in OpenMetrics, milliseconds in the other format; those of families are in seconds. */
export function familyText(family: MetricFamilyText, from: ExpositionFormat, to: ExpositionFormat): string {
  if (family.samples.size === 0) return "";
  const isOpen = to === "openmetrics";
  const isOpened = isOpen && from === "prometheus";
  const { name: shown, type } = isOpened ? openMetricsFamily(family) : family;
  const help = isOpened ? family.help?.replaceAll(/(?<!\\)"/g, '\\"') : family.help;
  let text = help === undefined ? "" : `# HELP ${shown} ${help}\n`;
  text += `# TYPE ${shown} ${type}\n`;
  if (isOpen && family.unit !== undefined && family.unit !== "") text += `# UNIT ${shown} ${family.unit}\n`;
  for (const [key, rest] of family.samples) text += `${key} ${isOpen ? rest : inMilliseconds(rest)}\n`;
  return text;
}

function inMilliseconds(rest: string): string {
  const [value = "", seconds] = rest.split(" ");
  return seconds === undefined ? value : `${value} ${Math.round(Number(seconds) * 1000)}`;
}
