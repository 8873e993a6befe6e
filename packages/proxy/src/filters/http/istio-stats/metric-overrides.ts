// What `stats.PluginConfig` changes of the standard metrics (tags taken away, given another value or added, metrics
// left out) and which it adds. Expressions that ask for nothing but what a label set has anyhow are evaluated when one
// is first seen; the others with each request.
import { Histogram, type Labels, type Metric, type MetricRegistry, otherValue } from "@tulle/telemetry";
import type { CelSubject, ReadAttribute } from "../../../cel/attributes.ts";
import { celText, type CelValue } from "../../../cel/cel-value.ts";
import { compileExpression } from "../../../cel/compile-expression.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { redactedValue, redactText } from "../../../format/redact-query.ts";
import type { RedactedNames } from "../../../format/redacted-names.ts";
import { ownText } from "../../../http/own-text.ts";
import { namesSecretHeader } from "../../../tracing/span-format.ts";
import type { DefinedType, MetricConfig, MetricDefinition, PluginConfig } from "./plugin-config.ts";
import { peerAttributes } from "./peer-attributes.ts";

/** Istio's names without `istio_`. */
const standardMetrics: ReadonlySet<string> = new Set([
  "requests_total",
  "request_duration_milliseconds",
  "request_bytes",
  "response_bytes",
  "request_messages_total",
  "response_messages_total",
  "tcp_connections_opened_total",
  "tcp_connections_closed_total",
  "tcp_sent_bytes_total",
  "tcp_received_bytes_total",
]);

/** Attributes that are the same for all requests of a label set. */
const attributesOfLabelSet: ReadonlySet<string> = new Set([
  "response.code",
  "xds.cluster_name",
  "xds.cluster_metadata.filter_metadata",
  "node",
  ...peerAttributes.keys(),
]);

/** Values of an expression told apart; the label has its own limit besides. */
const maxValues = 1000;
/** Of a value: a header may have kilobytes. */
const maxValueCharacters = 256;
const unknown = "unknown";

interface Entry {
  readonly name: string;
  readonly match: number | undefined;
  readonly drop: boolean;
  readonly removed: ReadonlySet<string>;
  /** Undefined: an expression that could not be compiled. */
  readonly tags: readonly (readonly [tag: string, expression: number | undefined])[];
}

interface CustomMetric {
  readonly name: string;
  readonly type: DefinedType;
  readonly value: ReadAttribute;
}

export interface CustomHandle {
  readonly metric: Metric;
  readonly type: DefinedType;
  readonly value: ReadAttribute;
}

export class MetricOverrides {
  readonly #known: ReadonlyMap<string, ReadAttribute>;
  readonly #redacted: RedactedNames;
  readonly #expressions: ReadAttribute[] = [];
  /** Of an expression that names a header of credentials, what it may come to: words of its own. */
  readonly #openWords = new Map<number, ReadonlySet<string>>();
  readonly #idOf = new Map<string, number | undefined>();
  /** Those that have to be asked with each request. */
  readonly #ofRequest: number[] = [];
  readonly #entries: readonly Entry[];
  readonly #custom: readonly CustomMetric[];
  #values: Map<number, Set<string>> = new Map();
  #isFull = false;

  constructor(config: PluginConfig, node: CelValue, redacted: RedactedNames, place: Place, problems: Problems) {
    this.#redacted = redacted;
    this.#known = new Map([...peerAttributes, ["node", () => node]]);
    this.#custom = config.definitions.flatMap((definition, index) =>
      this.#define(definition, place.field("definitions", index), problems),
    );
    this.#entries = config.metrics.map((metric, index) => this.#entry(metric, place.field("metrics", index), problems));
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0 && this.#custom.length === 0;
  }

  /** A value was `other`, since there were too many of its expression. */
  get isFull(): boolean {
    return this.#isFull;
  }

  #define({ name, value, type }: MetricDefinition, place: Place, problems: Problems): CustomMetric[] {
    if (standardMetrics.has(name)) {
      problems.warning(place.field("name"), `ignored: ${name} is a standard metric`);
      return [];
    }
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      problems.warning(place.field("name"), "ignored: no name of a metric");
      return [];
    }
    const compiled = compileExpression(value, this.#known);
    if (compiled.ok) return [{ name: `istio_${name}`, type, value: compiled.value }];
    problems.warning(place.field("value"), `the metric is not kept: the expression ${compiled.reason}`);
    return [];
  }

  #entry(metric: MetricConfig, place: Place, problems: Problems): Entry {
    const { name, drop, match } = metric;
    const isKnown = standardMetrics.has(name) || this.#custom.some((custom) => custom.name === `istio_${name}`);
    if (name !== "" && !isKnown) problems.warning(place.field("name"), `there is no metric ${name}`);
    const tags = [...metric.dimensions].map(([tag, expression]) => {
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(tag)) {
        problems.warning(place.key("dimensions", tag), "ignored: no name of a label");
        return undefined;
      }
      return [tag, this.#expression(expression, place.key("dimensions", tag), problems, "the tag is unknown")] as const;
    });
    const condition =
      match === "" ? undefined : (this.#expression(match, place.field("match"), problems, "it never holds") ?? -1);
    return {
      name,
      drop,
      match: condition,
      removed: new Set(metric.tagsToRemove),
      tags: tags.filter((tag) => tag !== undefined),
    };
  }

  /** Equal texts are evaluated once. */
  #expression(text: string, place: Place, problems: Problems, consequence: string): number | undefined {
    if (this.#idOf.has(text)) return this.#idOf.get(text);
    const compiled = compileExpression(text, this.#known);
    let id: number | undefined;
    if (compiled.ok) {
      id = this.#expressions.push(compiled.value) - 1;
      if (namesSecretHeader(text)) this.#openWords.set(id, wordsOf(text));
      if (![...compiled.attributes].every((name) => attributesOfLabelSet.has(name))) this.#ofRequest.push(id);
    } else {
      problems.warning(place, `${consequence}: the expression ${compiled.reason}`);
    }
    this.#idOf.set(text, id);
    return id;
  }

  /** What tells this request's label sets from those of others, within limits; empty where nothing does. */
  keyOf(subject: CelSubject): string {
    let key = "";
    for (const id of this.#ofRequest) key += `\0${this.#text(id, subject)}`;
    return key;
  }

  #text(id: number, subject: CelSubject): string {
    const text = this.#shownText(id, this.#expressions[id]!(subject));
    let values = this.#values.get(id);
    if (values === undefined) {
      values = new Set();
      this.#values.set(id, values);
    }
    // What is cut first costs little to look through.
    const value = redactText(textOfBytes(text, maxValueCharacters), this.#redacted);
    if (values.has(value)) return value;
    if (values.size >= maxValues) {
      this.#isFull = true;
      return otherValue;
    }
    values.add(ownText(value));
    return value;
  }

  /** Metrics are read by many: no credential gets into a label. */
  #shownText(id: number, value: CelValue | undefined): string {
    const text = celText(value) ?? unknown;
    const words = this.#openWords.get(id);
    if (words === undefined || typeof value === "boolean" || text === unknown || words.has(text)) return text;
    return redactedValue;
  }

  /** Makes room, when idle series have gone. */
  forgetValues(): void {
    this.#values = new Map();
    this.#isFull = false;
  }

  /** Undefined: the metric is not kept. `metric` is without `istio_`. */
  labels(metric: string, standard: Labels, subject: CelSubject): Labels | undefined {
    let labels: Record<string, string> | undefined;
    for (const { name, match, drop, removed, tags } of this.#entries) {
      if (name !== "" && name !== metric) continue;
      if (match !== undefined && this.#expressions[match]?.(subject) !== true) continue;
      if (drop) return undefined;
      labels ??= { ...standard };
      for (const tag of removed) delete labels[tag];
      for (const [tag, id] of tags) labels[tag] = id === undefined ? unknown : this.#text(id, subject);
    }
    return labels ?? standard;
  }

  custom(metrics: MetricRegistry, subject: CelSubject): readonly CustomHandle[] {
    return this.#custom.flatMap(({ name, type, value }) => {
      const labels = this.labels(name.slice("istio_".length), {}, subject);
      if (labels === undefined) return [];
      const description = { name, labels, isLabelledByRequests: true, isAskerFull: this.#isFull };
      const made: Readonly<Record<DefinedType, () => Metric>> = {
        COUNTER: () => metrics.counter(description),
        GAUGE: () => metrics.gauge(description),
        HISTOGRAM: () => metrics.histogram(description),
      };
      return [{ type, value, metric: made[type]() }];
    });
  }
}

/** Amounts are whole and not negative; what is none adds nothing (Istio). */
export function recordCustom(handles: readonly CustomHandle[], subject: CelSubject): void {
  for (const { metric, type, value } of handles) {
    const text = celText(value(subject)) ?? "";
    const amount = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    if (metric instanceof Histogram) metric.record(amount);
    else if (type === "GAUGE") metric.value = amount;
    else metric.value = Number(metric.value) + amount;
  }
}

const quoted = /'([^']*)'|"([^"]*)"/g;

/** What stands in an expression as text. */
function wordsOf(expression: string): ReadonlySet<string> {
  return new Set(Array.from(expression.matchAll(quoted), ([, single, double]) => single ?? double!));
}

const beyondAscii = /[\x80-\xff]/;
const beyondBytes = /[\u0100-\uffff]/;

/** The beginning of a text, whose characters stand for bytes where it is a head's; what is no UTF-8 stays as it is. */
function textOfBytes(whole: string, maxCharacters: number): string {
  const text = whole.length > maxCharacters ? whole.slice(0, maxCharacters) : whole;
  if (!beyondAscii.test(text) || beyondBytes.test(text)) return text;
  const decoded = Buffer.from(text, "latin1").toString();
  // The cut may have gone through a character.
  const kept = text === whole ? decoded : decoded.replace(/\ufffd$/, "");
  return kept.includes("\ufffd") ? text : kept;
}
