/** Fields of MeshConfig about traces, metrics and access logs, besides their providers. Field list of Istio 1.31. */
import { proxyMetricsEnvironment } from "@tulle/telemetry";
import { nonEmpty } from "../schema/formats.ts";
import {
  boolean,
  enumeration,
  integer,
  type Json,
  list,
  map,
  number,
  object,
  optional,
  type Report,
  string,
} from "../schema/schema.ts";
import { formatProblem } from "../rules/log-format.ts";
import { gatewayTopology } from "../rules/gateway-topology.ts";
import { customTags } from "./custom-tags.ts";

const names = list(string(nonEmpty));

const tracing = object({
  sampling: optional(number({ minimum: 0, maximum: 100 }), "Percentage of requests that are traced; 1 when missing."),
  zipkin: optional(
    object({ address: optional(string(), "`<host>:<port>` of what takes spans by Zipkin's API.") }),
    "Where spans go while no provider is named.",
  ),
  customTags: optional(customTags, "Tags of all spans, where no Telemetry has some."),
  maxPathTagLength: optional(integer({ minimum: 0 }), "Characters of a span's path tag, where the provider says none."),
  enableIstioTags: optional(
    boolean(),
    "Whether spans have the tags istio.*, while no Telemetry says; true when missing.",
  ),
});

export const telemetrySettings = {
  defaultProviders: optional(
    object({
      tracing: optional(names, "Where spans go; the first one counts."),
      metrics: optional(names, "What metrics are for; `prometheus` when missing, nothing when empty."),
      accessLogging: optional(names, "Where access logs go; `envoy` when missing, nowhere when empty."),
    }),
    "Providers where no Telemetry names one.",
  ),
  accessLogFile: optional(
    string(),
    "File of the provider `envoy`; /dev/stdout when missing, no log when empty and no provider is named.",
  ),
  accessLogFormat: optional(
    string(),
    "Format of its lines; JSON where accessLogEncoding says so; Istio's when missing.",
  ),
  accessLogEncoding: optional(enumeration(["TEXT", "JSON"]), "What its lines are; TEXT when missing."),
  disableEnvoyListenerLog: optional(boolean(), "Connections that no filter chain takes are not logged."),
  enableTracing: optional(
    boolean(),
    "Spans go to defaultConfig.tracing.zipkin while neither a default provider nor a Telemetry says where.",
  ),
  enablePrometheusMerge: optional(
    boolean(),
    "Port 15020 serves the metrics of the application beside those of its proxy; true when missing.",
  ),
  defaultConfig: optional(
    object({
      tracing: optional(tracing, "Settings of traces."),
      proxyMetadata: optional(
        map(string()),
        "Environment of proxies that start from now on: OTEL_* of OpenTelemetry, by which they send their metrics.",
      ),
      gatewayTopology: optional(gatewayTopology, "What stands between clients and gateways."),
    }),
    "Settings of all proxies, as far as they are read.",
  ),
} as const;

interface LogSettings {
  readonly accessLogFormat?: string;
  readonly accessLogEncoding?: "TEXT" | "JSON";
}

/** The format of JSON lines as it is written; undefined where it is no mapping. */
export function jsonLogFormat(text: string): Readonly<Record<string, Json>> | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, Json>>)
      : undefined;
  } catch {
    return undefined;
  }
}

interface ProxySettings {
  readonly defaultConfig?: { readonly proxyMetadata?: Readonly<Record<string, string>> };
}

/** Each sentence of what is not understood begins with the variable's name. */
export function metricsVariablesFit({ defaultConfig }: ProxySettings, report: Report): void {
  const { problems } = proxyMetricsEnvironment(defaultConfig?.proxyMetadata ?? {});
  for (const message of problems) report({ path: ["defaultConfig", "proxyMetadata"], message });
}

export function logFormatFits({ accessLogFormat = "", accessLogEncoding }: LogSettings, report: Report): void {
  const path = ["accessLogFormat"];
  if (accessLogFormat === "") return;
  if (accessLogEncoding === "JSON" && jsonLogFormat(accessLogFormat) === undefined) {
    report({ path, message: "with the encoding JSON it has to be a JSON object of names and formats" });
    return;
  }
  const message = formatProblem(accessLogFormat);
  if (message !== undefined) report({ path, message });
}
