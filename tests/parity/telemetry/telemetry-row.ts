// A case of behaviour of telemetry: a Telemetry resource and what the mesh's configuration says, a call through a
// proxy, and what that call has left, in a few words.
import type { IncomingHttpHeaders } from "node:http";
import type { ProxyKind } from "../../tools/meshed-proxies.ts";
import type { SeenSpan } from "../../../packages/proxy/src/testing/trace-collector.ts";

/** What one call has left, of one proxy, which it passed as a client and as a server. */
export interface Seen {
  /** Spans by side. */
  readonly spans: Readonly<Partial<Record<Side, SeenSpan>>>;
  /** Lines with the call's name, which is left out of them, of each file and of `stdout`. */
  readonly lines: (file: string) => readonly string[];
  /** Records by OTLP, and entries of Envoy's access log service, with the call's name in them. */
  readonly records: readonly Record<string, unknown>[];
  readonly entries: readonly Record<string, unknown>[];
  /** Headers that the application got. */
  readonly headers: IncomingHttpHeaders;
  /** Istio's metrics that have grown, without `istio_`, each with its labels. */
  readonly metrics: readonly GrownMetric[];
}

export type Side = "CLIENT" | "SERVER";

export interface GrownMetric {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface TelemetryRow {
  /** Of `spec`, in the namespace of the workloads; none when missing. */
  readonly spec?: object;
  /** MeshConfig; `standardMesh` when missing. */
  readonly mesh?: object;
  /** What else there is, before it. */
  readonly further?: readonly object[];
  readonly call?: {
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** Of a POST. */
    readonly body?: string;
    /** Straight to a port of the workload, from an address of its own; through its proxy as a client otherwise. */
    readonly to?: "http" | "tcp";
    /** What the application speaks: by HTTP/2 its answers have trailers. HTTP/1.1 when missing. */
    readonly application?: "HTTP/2";
  };
  /** Both when missing. */
  readonly proxy?: ProxyKind;
  /** It is about metrics, which are Tulle's proxy's alone. */
  readonly isMeasured?: true;
  readonly sees: (seen: Seen) => string;
  readonly expected: string;
}

/** Sides, in their order. */
export const spanSides = ({ spans }: Seen): string => sidesText(Object.keys(spans));

/** Sides of the lines of a log whose format ends with the cluster. */
export const sidesOf =
  (file: string) =>
  ({ lines }: Seen): string =>
    sidesText(lines(file).map((line) => (line.includes("outbound|") ? "CLIENT" : "SERVER")));

function sidesText(sides: readonly string[]): string {
  return [...sides].sort().join(" ");
}

/** A tag of the server's span, or of the client's where there is none; `-` without it. */
export function tagOf({ spans }: Seen, name: string): string {
  const { attributes = {} } = spans.SERVER ?? spans.CLIENT ?? {};
  return textOf(attributes[name]);
}

/** `-` for what is no text. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "-";
}
