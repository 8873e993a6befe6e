/**
 * Extension providers of MeshConfig that traces, metrics and access logs go to. Field list of Istio 1.31
 * (mesh/v1alpha1, ExtensionProvider).
 */
import { type Format, durationOrZero, headerName, nonEmpty, quote } from "../schema/formats.ts";
import {
  boolean,
  enumeration,
  type Infer,
  integer,
  type Json,
  json,
  list,
  map,
  notYet,
  object,
  optional,
  type Report,
  required,
  string,
} from "../schema/schema.ts";
import type { Path } from "../findings/places.ts";
import { formatProblem, logFormat } from "../rules/log-format.ts";

const addressFields = {
  service: required(
    string(nonEmpty),
    "Host of a Service of the mesh, in full, or of anything outside it; `<namespace>/<host>` is taken too.",
  ),
  port: required(integer({ minimum: 1, maximum: 65_535 }), "Its port. Outside the mesh, 443 is spoken to by TLS."),
} as const;

const maxTagLength = optional(integer({ minimum: 0 }), "Characters of a span's path tag; 256 when missing.");

/** As Istio's own pages write it: `/v1/traces` and `v1/traces` are the same. */
const urlPath: Format = {
  name: "path",
  description: "a path, with or without a slash before it",
  check: (value) => (/[\s#]/.test(value) ? `${quote(value)} is no path` : undefined),
};

/** A header of Istio's, by value; of a variable of istiod's own environment Tulle's control plane knows nothing. */
const header = object(
  {
    name: required(string(headerName), "Name of the header."),
    value: optional(string(), "Its value."),
    envName: notYet(
      string(),
      "Variable of the control plane that holds the value.",
      "has no effect: the header is left out",
    ),
  },
  { exactlyOne: [["value", "envName"]] },
);

const timeout = (text: string) => optional(string(durationOrZero), text);

const openTelemetry = object(
  {
    ...addressFields,
    maxTagLength,
    http: optional(
      object({
        path: required(string(urlPath), "Path that spans are posted to, as `/v1/traces`."),
        timeout: timeout("How long an answer may take; 5s when missing."),
        headers: optional(list(header), "Headers of the requests."),
      }),
      "Export by OTLP over HTTP; over gRPC when missing.",
    ),
    grpc: optional(
      object({
        timeout: timeout("How long an answer may take."),
        initialMetadata: optional(list(header), "Headers of the calls."),
      }),
      "Settings of OTLP over gRPC.",
    ),
    resourceDetectors: optional(
      object({
        environment: optional(object({}), "Attributes of OTEL_RESOURCE_ATTRIBUTES, which the proxy has."),
        dynatrace: notYet(object({}), "Attributes of the files that Dynatrace leaves."),
      }),
      "What adds attributes to the resource of the spans.",
    ),
    dynatraceSampler: notYet(json(), "Sampler of Dynatrace.", "has no effect: sampling is that of Telemetry"),
  },
  { atMostOne: [["http", "grpc"]] },
);

const zipkin = object({
  ...addressFields,
  maxTagLength,
  enable64bitTraceId: optional(boolean(), "Trace ids have 64 bits rather than 128."),
  path: optional(string(urlPath), "Path that spans are posted to; /api/v2/spans when missing."),
  traceContextOption: optional(
    enumeration(["USE_B3", "USE_B3_WITH_W3C_PROPAGATION"]),
    "Headers that are passed on; USE_B3 when missing.",
  ),
  timeout: timeout("How long an answer may take; 5s when missing."),
  headers: optional(list(header), "Headers of the requests."),
});

/** Texts in a structure of JSON are formats, however deep they stand. */
function formatsWithin(value: Json, path: Path, report: Report): void {
  if (typeof value === "string") {
    const message = formatProblem(value);
    if (message !== undefined) report({ path, message });
  } else if (Array.isArray(value)) value.forEach((each: Json, index) => formatsWithin(each, [...path, index], report));
  else if (typeof value === "object" && value !== null) {
    for (const [name, each] of Object.entries(value)) formatsWithin(each, [...path, name], report);
  }
}

function labelsAreFormats({ labels }: { readonly labels?: Readonly<Record<string, Json>> }, report: Report): void {
  if (labels !== undefined) formatsWithin(labels, ["labels"], report);
}

const fileAccessLog = object({
  path: optional(string(), "File that lines are written to; /dev/stdout when missing."),
  logFormat: optional(
    object(
      {
        text: optional(string(logFormat), "A line; its end is added where it has none."),
        labels: optional(map(json()), "Fields of a line of JSON, by name; Istio's when empty."),
      },
      { exactlyOne: [["text", "labels"]], rules: [labelsAreFormats] },
    ),
    "What a line is made of; the mesh's accessLogFormat, or Istio's, when missing.",
  ),
  omitEmptyValues: optional(boolean(), 'What has no value is left out; "-", or null, stands for it otherwise.'),
});

const logName = optional(string(), "How the log is called.");
const filterStateObjectsToLog = optional(list(string(nonEmpty)), "Objects of the filter state that are sent along.");
const headerNames = list(string(nonEmpty));

const otelAccessLog = object({
  ...addressFields,
  logName,
  logFormat: optional(
    object(
      {
        text: optional(string(logFormat), "Body of the record; Istio's line when missing."),
        labels: optional(map(string()), "Attributes of the record, by name."),
      },
      { rules: [labelsAreFormats] },
    ),
    "What a record is made of.",
  ),
  filterStateObjectsToLog,
});

const httpAccessLogService = object({
  ...addressFields,
  logName,
  filterStateObjectsToLog,
  additionalRequestHeadersToLog: optional(headerNames, "Headers of requests that are sent along."),
  additionalResponseHeadersToLog: optional(headerNames, "Headers of responses that are sent along."),
  additionalResponseTrailersToLog: optional(headerNames, "Trailers of responses that are sent along."),
});

export const telemetryProviderFields = {
  prometheus: optional(object({}), "Metrics that Prometheus fetches."),
  opentelemetry: optional(openTelemetry, "Traces by OTLP."),
  zipkin: optional(zipkin, "Traces by Zipkin's API."),
  envoyFileAccessLog: optional(fileAccessLog, "An access log in a file, or on standard output."),
  envoyOtelAls: optional(otelAccessLog, "An access log by OTLP."),
  envoyHttpAls: optional(httpAccessLogService, "An access log of requests by Envoy's access log service."),
  envoyTcpAls: optional(
    object({ ...addressFields, logName, filterStateObjectsToLog }),
    "An access log of connections by Envoy's access log service.",
  ),
} as const;

export type TelemetryProviderKind = keyof typeof telemetryProviderFields;
export const telemetryProviderKinds = Object.keys(telemetryProviderFields) as readonly TelemetryProviderKind[];

/** Providers of Istio's that have no effect: what names one has no destination. */
export const unreadProviderKinds: readonly string[] = [
  "lightstep",
  "datadog",
  "stackdriver",
  "opencensus",
  "skywalking",
  "sds",
];

export type OpenTelemetryProvider = Infer<typeof openTelemetry>;
export type ZipkinProvider = Infer<typeof zipkin>;
export type FileAccessLogProvider = Infer<typeof fileAccessLog>;
export type OtelAccessLogProvider = Infer<typeof otelAccessLog>;
export type HttpAccessLogServiceProvider = Infer<typeof httpAccessLogService>;
export type ProviderHeader = Infer<typeof header>;
