// What the environment says of a process's own spans, under OpenTelemetry's names (its specification: "Environment
// Variable Specification", "OpenTelemetry Protocol Exporter"). Nothing is sent unless an endpoint is named.
import { readFileSync } from "node:fs";

export interface TracingSettings {
  readonly serviceName: string;
  readonly protocol: "http/protobuf" | "grpc";
  /** For HTTP with its path, for gRPC without. */
  readonly endpoint: URL;
  /** Of each request; they may hold a secret, and stand in no log. */
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** How long a span waits for others. */
  readonly flushIntervalMs: number;
  /** Roots that the endpoint's certificate is judged by, in PEM; those of Node when missing. */
  readonly rootsPem?: string;
  readonly sampler: Sampler;
}

export interface Sampler {
  /** A trace that somebody else began goes on as its parent decided. */
  readonly isParentBased: boolean;
  /** Share of the traces, 0 to 1. */
  readonly ratio: number;
}

export interface TracingEnvironment {
  /** Undefined: off. */
  readonly settings: TracingSettings | undefined;
  /** What was not understood, each a sentence; values are not repeated. */
  readonly problems: readonly string[];
}

/** OpenTelemetry's. */
const defaultTimeoutMs = 10_000;
const defaultFlushIntervalMs = 5000;

const samplers: Readonly<Record<string, { readonly isParentBased: boolean; readonly ratio: number | "argument" }>> = {
  always_on: { isParentBased: false, ratio: 1 },
  always_off: { isParentBased: false, ratio: 0 },
  traceidratio: { isParentBased: false, ratio: "argument" },
  parentbased_always_on: { isParentBased: true, ratio: 1 },
  parentbased_always_off: { isParentBased: true, ratio: 0 },
  parentbased_traceidratio: { isParentBased: true, ratio: "argument" },
};

type Environment = Readonly<Record<string, string | undefined>>;

/** What is for traces alone goes before what is for all signals. */
function read(environment: Environment, name: string): string | undefined {
  return environment[`OTEL_EXPORTER_OTLP_TRACES_${name}`] || environment[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
}

export function tracingEnvironment(environment: Environment, defaultServiceName: string): TracingEnvironment {
  const isOff = environment["OTEL_SDK_DISABLED"] === "true" || environment["OTEL_TRACES_EXPORTER"] === "none";
  const endpointText = read(environment, "ENDPOINT");
  if (isOff || endpointText === undefined) return { settings: undefined, problems: [] };
  const problems: string[] = [];
  const protocol = read(environment, "PROTOCOL") ?? "http/protobuf";
  if (protocol !== "http/protobuf" && protocol !== "grpc") {
    return { settings: undefined, problems: ["OTEL_EXPORTER_OTLP_PROTOCOL is neither http/protobuf nor grpc"] };
  }
  const endpoint = URL.parse(endpointText);
  if (endpoint === null || (endpoint.protocol !== "http:" && endpoint.protocol !== "https:")) {
    return { settings: undefined, problems: ["OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL"] };
  }
  const isForAllSignals = !environment["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
  if (protocol !== "grpc" && isForAllSignals) endpoint.pathname = endpoint.pathname.replace(/\/?$/, "/v1/traces");
  const resource = pairs(environment["OTEL_RESOURCE_ATTRIBUTES"], "OTEL_RESOURCE_ATTRIBUTES", problems);
  const rootsPem = roots(read(environment, "CERTIFICATE"), problems);
  const settings: TracingSettings = {
    serviceName: environment["OTEL_SERVICE_NAME"] || resource["service.name"] || defaultServiceName,
    protocol,
    endpoint,
    headers: headersOf(read(environment, "HEADERS"), problems),
    resource,
    timeoutMs: milliseconds(read(environment, "TIMEOUT"), "OTEL_EXPORTER_OTLP_TIMEOUT", defaultTimeoutMs, problems),
    flushIntervalMs: milliseconds(
      environment["OTEL_BSP_SCHEDULE_DELAY"] || undefined,
      "OTEL_BSP_SCHEDULE_DELAY",
      defaultFlushIntervalMs,
      problems,
    ),
    ...(rootsPem === undefined ? {} : { rootsPem }),
    sampler: samplerOf(environment, problems),
  };
  return { settings, problems };
}

function roots(file: string | undefined, problems: string[]): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    problems.push(`OTEL_EXPORTER_OTLP_CERTIFICATE cannot be read: ${(error as NodeJS.ErrnoException).code}`);
    return undefined;
  }
}

function milliseconds(text: string | undefined, name: string, fallback: number, problems: string[]): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0 && value < 2 ** 31) return value;
  problems.push(`${name} is not a number of milliseconds`);
  return fallback;
}

function samplerOf(environment: Environment, problems: string[]): Sampler {
  const name = environment["OTEL_TRACES_SAMPLER"] || "parentbased_always_on";
  const sampler = Object.hasOwn(samplers, name) ? samplers[name] : undefined;
  if (sampler === undefined) {
    problems.push(`OTEL_TRACES_SAMPLER is none of ${Object.keys(samplers).join(", ")}`);
    return { isParentBased: true, ratio: 1 };
  }
  if (sampler.ratio !== "argument") return { isParentBased: sampler.isParentBased, ratio: sampler.ratio };
  const text = environment["OTEL_TRACES_SAMPLER_ARG"] || "1";
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return { isParentBased: sampler.isParentBased, ratio };
  problems.push("OTEL_TRACES_SAMPLER_ARG is not a share from 0 to 1");
  return { isParentBased: sampler.isParentBased, ratio: 1 };
}

/** `a=b,c=d` with percent-encoded values, as W3C's baggage has it. */
function pairs(text: string | undefined, name: string, problems: string[]): Record<string, string> {
  const found: [string, string][] = [];
  for (const member of (text ?? "").split(",").map((each) => each.trim())) {
    if (member === "") continue;
    const [, key, value] = /^([^=\s]+)\s*=\s*(.*)$/.exec(member) ?? [];
    const decoded = value === undefined ? undefined : decode(value);
    if (key === undefined || decoded === undefined) problems.push(`${name}: a member is not key=value`);
    else found.push([key, decoded]);
  }
  return Object.fromEntries(found);
}

function headersOf(text: string | undefined, problems: string[]): Record<string, string> {
  const name = "OTEL_EXPORTER_OTLP_HEADERS";
  const isSound = ([key, value]: [string, string]): boolean => {
    // RFC 9110 §5.1 and §5.5.
    const sound = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(key) && /^[\t\x20-\x7e]*$/.test(value);
    if (!sound) problems.push(`${name}: a member is no header`);
    return sound;
  };
  const named = Object.entries(pairs(text, name, problems)).filter(isSound);
  return Object.fromEntries(named.map(([key, value]) => [key.toLowerCase(), value]));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
