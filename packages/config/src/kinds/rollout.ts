/**
 * Rollout: how a new version of a Service takes over from the old one, step by step and on evidence. Words of Argo
 * Rollouts (`setWeight`, `pause`, `interval`, `failureLimit`) and Flagger (`thresholdRange`) where they mean the same.
 */
import { boolean, defaulted, enumeration, integer, list, map, number } from "../schema/schema.ts";
import { object, optional, required, string } from "../schema/schema.ts";
import type { Infer, ObjectValue, Report } from "../schema/schema.ts";
import { destinationHost, dnsLabel, dnsSubdomain, duration, type Format } from "../schema/formats.ts";
import { headerName, nonEmpty, quote, regex, subsetName } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { parseDuration } from "../schema/duration.ts";
import { defineKind } from "./definition.ts";
import { labelNamedMetadata } from "./metadata.ts";
import { webUrl } from "../schema/web-url.ts";

/** Steps of one roll-out, and metrics of one analysis. */
const maxSteps = 100;
const maxMetrics = 20;
/** Each look reads the metrics of every sidecar. */
const minIntervalMs = 1000;
/** A metric that is measured more often stays in no one's memory. */
const maxCount = 1000;

const timeOfDay: Format = {
  name: "time of day",
  description: 'hours and minutes as "09:00", up to "24:00"',
  check: (value) =>
    /^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$/.test(value) ? undefined : `${quote(value)} is no ${timeOfDay.description}`,
  jsonSchema: { pattern: String.raw`^(?:[01]\d|2[0-3]):[0-5]\d$|^24:00$` },
};

const timestamp: Format = {
  name: "time",
  description: 'a time of RFC 3339, as "2026-12-24T18:00:00Z"',
  check: (value) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(value) && !Number.isNaN(Date.parse(value))
      ? undefined
      : `${quote(value)} is not ${timestamp.description}`,
  jsonSchema: { format: "date-time" },
};

const timeZone: Format = {
  name: "time zone",
  description: 'a name of the time zone database, as "Europe/Vienna"',
  check: (value) => {
    try {
      Intl.DateTimeFormat("en", { timeZone: value });
      return undefined;
    } catch {
      return `${quote(value)} is not ${timeZone.description}`;
    }
  },
};

const interval: Format = {
  ...duration,
  check: (value) =>
    duration.check(value) ??
    (parseDuration(value)! < minIntervalMs ? `${quote(value)} is shorter than 1s, the shortest interval` : undefined),
};

const version = object(
  {
    subset: optional(string(subsetName), "Subset that a DestinationRule of the host names."),
    labels: optional(map(string(labelValue), labelKey), "Labels of its pods, where no DestinationRule names them."),
  },
  {
    exactlyOne: [["subset", "labels"]],
    rules: [
      ({ labels }, report) => {
        if (labels !== undefined && Object.keys(labels).length === 0)
          report({ path: ["labels"], message: "no labels are those of every pod", suggestion: "Name at least one." });
      },
    ],
  },
);

const headerMatch = object(
  {
    name: required(string(headerName), "Header of the request."),
    exact: optional(string(nonEmpty), "The whole value."),
    prefix: optional(string(nonEmpty), "How the value begins."),
    regex: optional(string(regex), "RE2 expression that the whole value matches."),
  },
  { atMostOne: [["exact", "prefix", "regex"]] },
);

const thresholdRange = object({
  min: optional(number(), "Smallest good value."),
  max: optional(number(), "Largest good value."),
});

const metricFields = {
  name: required(string(dnsLabel), "How status and messages call it."),
  successRate: optional(
    object({}),
    "Percent of the version's requests that did not fail: no status 5xx, and by gRPC the status OK.",
  ),
  latency: optional(
    object({ percentile: defaulted(number({ minimum: 1, maximum: 100 }), 99, "Share of requests that are as quick.") }),
    "Milliseconds within which so many of the version's requests were answered.",
  ),
  prometheus: optional(
    object({
      address: required(
        string(webUrl),
        "Base URL, which the mesh's configuration has to list in rolloutPrometheusUrls.",
      ),
      query: required(string(nonEmpty), "PromQL with one number for a result."),
    }),
    "The number that a query gives.",
  ),
  thresholdRange: optional(thresholdRange, "Between which values, both included, a measurement is good."),
  stableTolerance: optional(
    number({ minimum: 0 }),
    "How much worse than the stable version's a good value may be: percentage points of a success rate, percent of a latency.",
  ),
  interval: defaulted(string(interval), "30s", "From one measurement to the next."),
  count: defaulted(
    integer({ minimum: 1, maximum: maxCount }),
    1,
    "Measurements until a step of analysis is done; one in the background goes on.",
  ),
  failureLimit: defaulted(integer({ minimum: 0, maximum: maxCount }), 0, "Bad measurements that are borne."),
  minRequests: defaulted(
    integer({ minimum: 1, maximum: 1_000_000 }),
    20,
    "Requests to the version that a measurement needs; with fewer it waits.",
  ),
} as const;

function metricIsComparable(metric: ObjectValue<typeof metricFields>, report: Report): void {
  const { thresholdRange: range, stableTolerance, prometheus, successRate } = metric;
  const { min, max } = range ?? {};
  if (min === undefined && max === undefined && stableTolerance === undefined) {
    report({
      message: `the metric "${metric.name}" is compared with nothing`,
      suggestion: 'Add "thresholdRange" with min or max, or "stableTolerance".',
    });
  }
  if (min !== undefined && max !== undefined && min > max) {
    report({ path: ["thresholdRange"], message: `no value is at least ${min} and at most ${max}` });
  }
  if (prometheus !== undefined && stableTolerance !== undefined) {
    report({
      path: ["stableTolerance"],
      message: "a query has no value of the stable version",
      suggestion: "Compare both versions in the query.",
    });
  }
  if (successRate !== undefined && ((min ?? 0) > 100 || (max ?? 100) < 0)) {
    report({ path: ["thresholdRange"], message: "a success rate is a number from 0 to 100" });
  }
}

const metric = object(metricFields, {
  exactlyOne: [["successRate", "latency", "prometheus"]],
  rules: [metricIsComparable],
});

const analysisFields = {
  metrics: required(list(metric, { minItems: 1, uniqueBy: "name" }), "What is measured; each has to be good."),
} as const;

function fewMetrics({ metrics }: ObjectValue<typeof analysisFields>, report: Report): void {
  if (metrics.length > maxMetrics)
    report({ path: ["metrics"], message: `there are ${metrics.length} metrics, and ${maxMetrics} are possible` });
}

const analysis = object(analysisFields, { rules: [fewMetrics] });

const step = object(
  {
    setWeight: optional(integer({ minimum: 0, maximum: 100 }), "Percent of the requests that go to the canary."),
    setHeaderRoute: optional(
      object({ match: optional(headerMatch, "Requests that go to the canary; none any more when missing.") }),
      "Requests with a header go to the canary, whatever the weight.",
    ),
    pause: optional(
      object({ duration: optional(string(duration), "How long; until it is resumed when missing.") }),
      "Waits.",
    ),
    analysis: optional(analysis, "Goes on once every metric was measured so often and found good."),
  },
  { exactlyOne: [["setWeight", "setHeaderRoute", "pause", "analysis"]] },
);

const backgroundAnalysis = object(
  {
    ...analysisFields,
    startingStep: defaulted(integer({ minimum: 0, maximum: maxSteps }), 0, "Number of the step that it begins with."),
  },
  { rules: [fewMetrics] },
);

const canaryFields = {
  steps: required(list(step, { minItems: 1 }), "What happens, one after the other; after the last the canary has all."),
  analysis: optional(backgroundAnalysis, "What is measured for as long as the steps run."),
} as const;

function fewSteps({ steps }: ObjectValue<typeof canaryFields>, report: Report): void {
  if (steps.length > maxSteps)
    report({ path: ["steps"], message: `there are ${steps.length} steps, and ${maxSteps} are possible` });
}

const blueGreen = object({
  previewHeader: optional(headerMatch, "Requests that see the new version before the others."),
  prePromotionAnalysis: optional(analysis, "What has to be good before the switch, on the requests of the preview."),
  autoPromotionEnabled: defaulted(boolean(), false, "Switches without being told to promote."),
  postPromotionAnalysis: optional(analysis, "What has to be good after the switch."),
  keepOldFor: optional(string(duration), "How long after the switch it can still be undone by abort."),
});

const day = enumeration(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]);

const windowFields = {
  days: optional(list(day, { minItems: 1 }), "Days of the week; every day when missing."),
  from: optional(string(timeOfDay), "When the window begins."),
  to: optional(string(timeOfDay), "When it ends; on the next day when that is earlier."),
  start: optional(string(timestamp), "When the window begins, once."),
  end: optional(string(timestamp), "When it ends, once."),
} as const;

function windowHasTwoEnds(window: ObjectValue<typeof windowFields>, report: Report): void {
  const { days, from, to, start, end } = window;
  const isDaily = from !== undefined && to !== undefined && start === undefined && end === undefined;
  const isOnce =
    start !== undefined && end !== undefined && from === undefined && to === undefined && days === undefined;
  if (!isDaily && !isOnce) {
    report({
      message: "a window has from and to, each day or on some days, or start and end",
      suggestion: 'For example {days: [Sat, Sun], from: "00:00", to: "24:00"}.',
    });
  } else if (isOnce && Date.parse(start) >= Date.parse(end)) {
    report({ path: ["end"], message: "the window ends before it begins" });
  } else if (isDaily && from === to) {
    report({ path: ["to"], message: "the window has no length", suggestion: 'All day is from "00:00" to "24:00".' });
  }
}

const freeze = object({
  enabled: defaulted(boolean(), false, "Nothing goes forward now."),
  timeZone: defaulted(string(timeZone), "UTC", "Of the times of day."),
  windows: optional(list(object(windowFields, { rules: [windowHasTwoEnds] })), "When nothing goes forward."),
});

const rolloutFields = {
  host: required(string(destinationHost), "Service: a short name (in the namespace of the Rollout) or a full one."),
  stable: required(version, "The version that has the requests now."),
  canary: required(version, "The version that takes over."),
  virtualService: optional(
    object({
      name: required(string(dnsSubdomain), "Name, in the namespace of the Rollout."),
      routes: optional(list(string(nonEmpty), { minItems: 1 }), "Names of its HTTP routes; all when missing."),
    }),
    "The VirtualService that the weights are laid over; every one that leads to the host, or its own route, when missing.",
  ),
  strategy: required(
    object(
      {
        canary: optional(object(canaryFields, { rules: [fewSteps] }), "By steps of weight or of a header."),
        blueGreen: optional(blueGreen, "All at once, after a preview."),
      },
      { exactlyOne: [["canary", "blueGreen"]] },
    ),
    "How the canary takes over.",
  ),
  freeze: optional(freeze, "When nothing goes forward; going back is always possible."),
} as const;

function versionsDiffer({ stable, canary }: ObjectValue<typeof rolloutFields>, report: Report): void {
  const text = ({ subset, labels = {} }: Infer<typeof version>): string =>
    subset ?? JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
  if (text(stable) === text(canary)) report({ path: ["canary"], message: "it is the stable version, too" });
}

export const rollout = defineKind({
  kind: "Rollout",
  plural: "rollouts",
  shortNames: ["ro"],
  apiVersions: ["rollouts.tulle.io/v1alpha1"],
  scope: "Namespaced",
  affects: "nothing",
  writtenBy: "user",
  unknownField: "error",
  description: "How a new version of a Service takes over.",
  schema: object(
    {
      metadata: required(labelNamedMetadata, "Metadata."),
      spec: required(object(rolloutFields, { rules: [versionsDiffer] }), "From what to what, and how."),
    },
    { unread: ["status"] },
  ),
});
