// What the environment says of how a process's own spans and metrics leave it, under OpenTelemetry's names (its
// specification: "Environment Variable Specification", "OpenTelemetry Protocol Exporter"). Nothing is sent unless an
// endpoint is named.
import { readFileSync } from "node:fs";

export type Signal = "traces" | "metrics";

export interface ExporterSettings {
  readonly signal: Signal;
  readonly serviceName: string;
  readonly protocol: "http/protobuf" | "grpc";
  /** For HTTP with its path, for gRPC without. */
  readonly endpoint: URL;
  /** Of each request; they may hold a secret, and stand in no log. */
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Roots that the endpoint's certificate is judged by, in PEM; those of Node when missing. */
  readonly rootsPem?: string;
}

const defaultTimeoutMs = 10_000;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Undefined: off. `problems` takes what was not understood, each a sentence; values are not repeated. What is for one
 * signal alone goes before what is for all.
 */
export function exporterSettings(
  environment: Environment,
  signal: Signal,
  defaultServiceName: string,
  problems: string[],
): ExporterSettings | undefined {
  const ofSignal = signal.toUpperCase();
  const read = (name: string): string | undefined =>
    environment[`OTEL_EXPORTER_OTLP_${ofSignal}_${name}`] || environment[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
  const endpointText = read("ENDPOINT");
  if (environment["OTEL_SDK_DISABLED"] === "true" || endpointText === undefined) return undefined;
  const exporter = environment[`OTEL_${ofSignal}_EXPORTER`] || "otlp";
  if (exporter !== "otlp") {
    if (exporter !== "none") problems.push(`OTEL_${ofSignal}_EXPORTER is neither otlp nor none`);
    return undefined;
  }
  const protocol = read("PROTOCOL") ?? "http/protobuf";
  if (protocol !== "http/protobuf" && protocol !== "grpc") {
    problems.push("OTEL_EXPORTER_OTLP_PROTOCOL is neither http/protobuf nor grpc");
    return undefined;
  }
  const endpoint = URL.parse(endpointText);
  if (endpoint === null || (endpoint.protocol !== "http:" && endpoint.protocol !== "https:")) {
    problems.push("OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL");
    return undefined;
  }
  const isForAllSignals = !environment[`OTEL_EXPORTER_OTLP_${ofSignal}_ENDPOINT`];
  if (protocol !== "grpc" && isForAllSignals) endpoint.pathname = endpoint.pathname.replace(/\/?$/, `/v1/${signal}`);
  const resource = pairs(environment["OTEL_RESOURCE_ATTRIBUTES"], "OTEL_RESOURCE_ATTRIBUTES", problems);
  const rootsPem = roots(read("CERTIFICATE"), problems);
  return {
    signal,
    serviceName: environment["OTEL_SERVICE_NAME"] || resource["service.name"] || defaultServiceName,
    protocol,
    endpoint,
    headers: headersOf(read("HEADERS"), problems),
    resource,
    timeoutMs: milliseconds(read("TIMEOUT"), "OTEL_EXPORTER_OTLP_TIMEOUT", defaultTimeoutMs, problems),
    ...(rootsPem === undefined ? {} : { rootsPem }),
  };
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

/** More than 0. */
export function milliseconds(text: string | undefined, name: string, defaultMs: number, problems: string[]): number {
  if (text === undefined || text === "") return defaultMs;
  const timeMs = Number(text);
  if (Number.isSafeInteger(timeMs) && timeMs > 0 && timeMs < 2 ** 31) return timeMs;
  problems.push(`${name} is not a number of milliseconds`);
  return defaultMs;
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

/** Of the connection or the message, not the sender's to choose (RFC 9113 §8.2.2, RFC 9110 §7.6.1). */
const framingHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

function headersOf(text: string | undefined, problems: string[]): Record<string, string> {
  const name = "OTEL_EXPORTER_OTLP_HEADERS";
  const isSound = ([key, value]: [string, string]): boolean => {
    // RFC 9110 §5.1 and §5.5.
    const isHeader = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(key) && /^[\t\x20-\x7e]*$/.test(value);
    const isFraming = framingHeaders.has(key.toLowerCase());
    if (!isHeader) problems.push(`${name}: a member is no header`);
    else if (isFraming) problems.push(`${name}: a member is a header of the connection`);
    return isHeader && !isFraming;
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
