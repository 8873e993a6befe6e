// Where the cases of telemetry are played: a workload with a proxy of each kind, which calls itself, and what takes
// traces and logs. What a call has left is looked at once everything is played and the proxies have ended: then
// nothing is under way any more, and what has not come never comes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { loadText, readMeshConfig } from "@tulle/config";
import { ExportLogsServiceRequestSchema } from "@tulle/xds/opentelemetry/proto/collector/logs/v1/logs_service_pb";
import { stringify } from "yaml";
import { AccessLogService } from "../../../packages/proxy/src/testing/access-log-service.ts";
import { TraceCollector } from "../../../packages/proxy/src/testing/trace-collector.ts";
import { MeshedProxies, type ProxyKind } from "../../tools/meshed-proxies.ts";
import { waitFor } from "../../tools/processes.ts";
import type { GrownMetric, Seen, Side, TelemetryRow } from "./telemetry-row.ts";

/** What is played once: a row, or a row without one of its fields. */
export interface Played {
  readonly row: TelemetryRow;
  readonly expected: string;
  /** By kind of proxy, those that it is for. */
  readonly seen: Map<ProxyKind, () => Seen>;
}

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const namespace = "shop";
const outboundPort = 15_007;
const httpPort = 3000;
const tcpPort = 3001;
const http2Port = 3002;
/** How long what is missing is waited for; a test then says what that is. */
const patienceMs = 10_000;

export class TelemetryStage {
  readonly #collector = new TraceCollector();
  readonly #accessLogs = new AccessLogService();
  readonly #folder: string;
  #mesh!: MeshedProxies;
  #collectorManifests: readonly object[] = [];
  #calls = 0;

  /** Logs are files in `folder`. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<void> {
    const ports = await this.#collector.start();
    const logs = await this.#accessLogs.start();
    this.#collectorManifests = serviceManifests("collector", {
      "grpc-otlp": [4317, ports.grpcPort],
      "http-otlp": [4318, ports.httpPort],
      "grpc-als": [9000, logs],
    });
    this.#mesh = await MeshedProxies.start({
      pods: kinds.map((proxy) => ({
        name: `server-${proxy}`,
        namespace,
        proxy,
        labels: { tier: "front", "gateway.networking.k8s.io/gateway-name": "edge" },
      })),
      ports: [httpPort, tcpPort, http2Port],
      protocols: { [tcpPort]: "tcp", [http2Port]: "http2" },
      manifests: this.#manifests({ sees: () => "", expected: "" }),
      proxyEnvironment: { OTEL_RESOURCE_ATTRIBUTES: "shop.floor=2" },
    });
  }

  /** A row is refused where its Telemetry or the mesh's configuration is: then nothing is played. */
  isRefused(row: TelemetryRow): boolean {
    const { findings } = loadText(this.#manifests(row), "row.yaml");
    return (
      findings.some(({ severity }) => severity === "error") ||
      readMeshConfig(meshText(row, this.#folder)).config === undefined
    );
  }

  async play(row: TelemetryRow, expected: string): Promise<Played> {
    await this.#mesh.setManifests(this.#manifests(row));
    await this.#mesh.settled();
    const only = row.isMeasured === true ? "tulle" : row.proxy;
    const played = kinds.filter((kind) => only === undefined || only === kind);
    const seen = await Promise.all(played.map(async (kind) => [kind, await this.#call(kind, row, expected)] as const));
    return { row, expected, seen: new Map(seen) };
  }

  /** Lets the proxies tell what they have kept so far, and ends them once `isComplete`, or after its time. */
  async end(isComplete: () => boolean): Promise<void> {
    // Who drains does not wait for spans to become a batch.
    await Promise.all(kinds.map((kind) => this.#mesh.admin(`server-${kind}`, "/drain_listeners", "POST")));
    await waitFor(isComplete, { what: "what calls leave", intervalMs: 50, timeoutMs: patienceMs }).catch(
      () => undefined,
    );
    await this.#mesh[Symbol.asyncDispose]();
  }

  async close(): Promise<void> {
    await this.#mesh?.[Symbol.asyncDispose]();
    this.#collector.close();
    this.#accessLogs.close();
  }

  async #call(kind: ProxyKind, row: TelemetryRow, expected: string): Promise<() => Seen> {
    const number = (this.#calls += 1);
    const name = `call-${number}.`;
    const { address } = this.#mesh.pod(`server-${kind}`);
    const { path: asked = "/", headers = {}, body, to, application } = row.call ?? {};
    const appPort = application === "HTTP/2" ? http2Port : httpPort;
    const host = `server-${kind}.${namespace}.svc.cluster.local:${appPort}`;
    const before = row.isMeasured === true ? await this.#metrics(kind) : new Map<string, number>();
    // A connection to TCP stays open until its metrics have been looked at.
    const agent = to === "tcp" ? new http.Agent({ keepAlive: true }) : false;
    // What is logged of a connection knows nothing but where it came from.
    const localAddress = `127.9.${number >> 8}.${number & 255}`;
    const options = {
      method: body === undefined ? "GET" : "POST",
      host: address,
      port: to === undefined ? outboundPort : to === "tcp" ? tcpPort : httpPort,
      path: to === undefined ? `http://${host}${asked}` : asked,
      headers: { ...headers, host, "x-row": name, "user-agent": name },
      agent,
      ...(to === undefined ? {} : { localAddress }),
    };
    const got = await exchange(options, body);
    const isOf = (text: string): boolean =>
      [name, `${localAddress}:`, `"${localAddress}"`].some((each) => text.includes(each));
    let metrics: readonly GrownMetric[] = [];
    const seen = (): Seen => ({ ...this.#left(kind, name, isOf), headers: got, metrics });
    if (row.isMeasured === true) {
      // They are cumulative, so that they are looked at before the next call.
      const isThere = async (): Promise<boolean> => {
        metrics = grown(before, await this.#metrics(kind));
        return row.sees(seen()) === expected;
      };
      await waitFor(isThere, { what: expected, intervalMs: 20, timeoutMs: patienceMs }).catch(() => undefined);
    }
    if (agent !== false) agent.destroy();
    return seen;
  }

  #left(kind: ProxyKind, name: string, isOf: (text: string) => boolean): Omit<Seen, "headers" | "metrics"> {
    const spans = this.#collector.spans.filter(({ attributes }) => attributes["user_agent"] === name);
    const sideOf = (cluster: unknown): Side => (String(cluster).startsWith("outbound") ? "CLIENT" : "SERVER");
    const isNamed = (value: unknown): boolean => isOf(JSON.stringify(value));
    return {
      spans: Object.fromEntries(spans.map((span) => [sideOf(span.attributes["upstream_cluster.name"]), span])),
      lines: (file) => {
        const text = file === "stdout" ? this.#mesh.output(`server-${kind}`) : readIfThere(this.#file(file));
        const lines = text.split("\n").filter(isOf);
        return lines.map((line) => line.replaceAll(name, "").trim());
      },
      records: this.#collector.logs.flatMap(recordsOf).filter(isNamed),
      entries: this.#entries().filter(isNamed),
    };
  }

  /** Each with the name of its log. */
  #entries(): readonly Record<string, unknown>[] {
    const names = this.#accessLogs.messages.flatMap(({ identifier }) => identifier?.logName ?? []);
    return [...new Set(names)].flatMap((logName) =>
      this.#accessLogs.entries(logName).map((entry) => ({ ...entry, logName })),
    );
  }

  #file(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Istio's, of the proxy's own page of Prometheus. */
  async #metrics(kind: ProxyKind): Promise<ReadonlyMap<string, number>> {
    const page = await this.#mesh.admin(`server-${kind}`, "/stats/prometheus");
    const lines = page.matchAll(/^istio_(\w+\{.*\}) (\d+)$/gm);
    return new Map([...lines].map(([, series, value]) => [series!, Number(value)] as const));
  }

  #manifests(row: TelemetryRow): string {
    const map = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "tulle", namespace: "tulle-system" },
      data: { mesh: meshText(row, this.#folder) },
    };
    const freshConnections = {
      apiVersion: "networking.istio.io/v1",
      kind: "DestinationRule",
      metadata: { name: "fresh-connections", namespace },
      spec: {
        host: `*.${namespace}.svc.cluster.local`,
        // A connection that was kept would still be served by the listener of the row before.
        trafficPolicy: { connectionPool: { http: { maxRequestsPerConnection: 1 } } },
      },
    };
    const own = row.spec === undefined ? [] : [telemetry("row", namespace, row.spec)];
    const all = [map, freshConnections, ...this.#collectorManifests, ...(row.further ?? []), ...own];
    return all.map((each) => JSON.stringify(each)).join("\n---\n");
  }
}

export function telemetry(name: string, where: string, spec: object): object {
  return { apiVersion: "telemetry.istio.io/v1", kind: "Telemetry", metadata: { name, namespace: where }, spec };
}

/** Files of logs are named in a row as if they stood in the folder `/logs`. */
function meshText({ mesh = {} }: TelemetryRow, folder: string): string {
  return stringify(mesh).replaceAll("/logs/", `${folder}/`);
}

/** A Service whose endpoint is this machine, without a proxy. */
export function serviceManifests(
  name: string,
  ports: Readonly<Record<string, readonly [port: number, real: number]>>,
): object[] {
  const metadata = { name, namespace: "observability" };
  const each = Object.entries(ports);
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: { ports: each.map(([portName, [port, targetPort]]) => ({ name: portName, port, targetPort })) },
  };
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: each.map(([portName, [, port]]) => ({ name: portName, port })),
    endpoints: [{ addresses: ["127.0.0.1"] }],
  };
  return [service, slice];
}

/** The headers that the application got; none where the proxy has closed the connection. */
async function exchange(options: http.RequestOptions, sent?: string): Promise<http.IncomingHttpHeaders> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = http.request(options);
  request.once("error", (error: NodeJS.ErrnoException) =>
    error.code === "ECONNRESET" ? resolve("{}") : reject(error),
  );
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    response
      .on("data", (chunk: Buffer) => chunks.push(chunk))
      .once("end", () => resolve(String(Buffer.concat(chunks))));
  });
  request.end(sent);
  const body = await promise;
  assert.ok(body.startsWith("{"), body);
  return (JSON.parse(body) as { readonly headers?: http.IncomingHttpHeaders }).headers ?? {};
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function recordsOf(body: Buffer): readonly Record<string, unknown>[] {
  const schema = ExportLogsServiceRequestSchema;
  const { resourceLogs = [] } = toJson(schema, fromBinary(schema, body)) as {
    readonly resourceLogs?: readonly {
      readonly resource?: object;
      readonly scopeLogs?: readonly { readonly logRecords?: readonly Record<string, unknown>[] }[];
    }[];
  };
  return resourceLogs.flatMap(({ resource, scopeLogs = [] }) =>
    scopeLogs.flatMap(({ logRecords = [] }) => logRecords.map((record) => ({ ...record, resource }))),
  );
}

function grown(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): readonly GrownMetric[] {
  return [...after]
    .filter(([series, value]) => value > (before.get(series) ?? 0))
    .map(([series]) => {
      const [, name = "", labels = ""] = /^(\w+)\{(.*)\}$/.exec(series) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label!, value!] as const);
      return { name: name.replace(/_(bucket|sum|count)$/, ""), labels: Object.fromEntries(pairs) };
    });
}
