/**
 * Telemetry: which traces, metrics and access logs workloads give, and where these go. Field list of Istio 1.31
 * (telemetry.istio.io).
 */
import {
  boolean,
  defaulted,
  enumeration,
  list,
  map,
  number,
  object,
  type ObjectValue,
  optional,
  type Report,
  required,
  string,
} from "../schema/schema.ts";
import { duration, nonEmpty } from "../schema/formats.ts";
import { customTags } from "../mesh-config/custom-tags.ts";
import { defineKind, telemetryApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { heldTargetFields, oneTarget } from "./policy-target.ts";

export const istioMetrics = [
  "REQUEST_COUNT",
  "REQUEST_DURATION",
  "REQUEST_SIZE",
  "RESPONSE_SIZE",
  "TCP_OPENED_CONNECTIONS",
  "TCP_CLOSED_CONNECTIONS",
  "TCP_SENT_BYTES",
  "TCP_RECEIVED_BYTES",
  "GRPC_REQUEST_MESSAGES",
  "GRPC_RESPONSE_MESSAGES",
] as const;

const mode = optional(
  enumeration(["CLIENT_AND_SERVER", "CLIENT", "SERVER"]),
  "Requests of the workload, requests to it, or both; gateways are clients.",
);
const match = optional(object({ mode }), "Which requests and connections are meant; all when missing.");

const providers = optional(
  list(object({ name: required(string(nonEmpty), "Name of a provider of the mesh's configuration.") })),
  "Where it goes; as the Telemetry above says, or the mesh's defaultProviders, when missing.",
);

const tracing = object(
  {
    match,
    providers,
    randomSamplingPercentage: optional(
      number({ minimum: 0, maximum: 100 }),
      "Percentage of requests that are traced where their caller has not decided.",
    ),
    disableSpanReporting: optional(boolean(), "No spans are made."),
    customTags: optional(customTags, "Tags of the spans, by name."),
    useRequestIdForTraceSampling: optional(
      boolean(),
      "X-Request-Id decides, and tells the decision on; true when missing.",
    ),
    enableIstioTags: optional(boolean(), "Whether spans have the tags istio.*; true when missing."),
    disableContextPropagation: optional(boolean(), "Headers of traces are neither made nor changed."),
  },
  { rules: [oneProvider] },
);

const tagOverride = object({
  operation: optional(enumeration(["UPSERT", "REMOVE"]), "UPSERT when missing."),
  value: optional(string(), "CEL expression of the value; of UPSERT alone."),
});

const override = object({
  match: optional(
    object(
      {
        metric: optional(enumeration(["ALL_METRICS", ...istioMetrics]), "One of Istio's metrics; all when missing."),
        customMetric: optional(string(nonEmpty), "Any metric, by its name without `istio_`."),
        mode,
      },
      { atMostOne: [["metric", "customMetric"]] },
    ),
    "Which metrics are meant; all when missing.",
  ),
  disabled: optional(boolean(), "The metric is not kept."),
  tagOverrides: optional(map(tagOverride), "Labels of the metric, by name."),
});

const fields = {
  ...heldTargetFields,
  tracing: optional(list(tracing), "Traces."),
  metrics: optional(
    list(
      object({
        providers,
        overrides: optional(list(override), "Changes to metrics; the last of two about the same counts."),
        reportingInterval: optional(
          string(duration),
          "How often connections that are open are counted; 5s when missing. Metrics of TCP alone.",
        ),
      }),
    ),
    "Metrics.",
  ),
  accessLogging: optional(
    list(
      object({
        match,
        providers,
        disabled: optional(boolean(), "Nothing is logged there."),
        filter: optional(
          object({ expression: optional(string(), "CEL expression; what it is true for is logged.") }),
          "What is logged; everything when missing.",
        ),
      }),
    ),
    "Access logs.",
  ),
} as const;

/** Istio and Envoy know one tracer a listener. */
function oneProvider({ providers: all = [] }: { readonly providers?: readonly unknown[] }, report: Report): void {
  if (all.length < 2) return;
  report({
    code: "IST0133",
    path: ["providers", 1],
    message: "spans go to one provider: the first of the list counts",
  });
}

function singleTracing({ tracing: all = [] }: ObjectValue<typeof fields>, report: Report): void {
  const seen = new Set<string>();
  all.forEach(({ match: chosen }, index) => {
    const name = chosen?.mode ?? "CLIENT_AND_SERVER";
    if (seen.has(name)) {
      const message = `there is an entry about ${name} already: what both say, the later one says`;
      report({ code: "IST0133", path: ["tracing", index], message });
    }
    seen.add(name);
  });
}

export const telemetry = defineKind({
  kind: "Telemetry",
  plural: "telemetries",
  shortNames: ["telemetry"],
  apiVersions: telemetryApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Which traces, metrics and access logs workloads give, and where these go.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: defaulted(
        object(fields, { rules: [oneTarget, singleTracing] }),
        {},
        "What is given; all is inherited when it is empty.",
      ),
    },
    { unread: ["status"] },
  ),
});
