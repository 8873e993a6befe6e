// A real Jaeger, a real OpenTelemetry collector before it, and what Jaeger says of a trace.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { goProgram } from "../../tools/go-program.ts";
import { freePort, type StartedProcess, startProcess, waitFor } from "../../tools/processes.ts";

/** Builds both, once for a state of their module. */
export const tracingProgram = (): Promise<string> => goProgram(import.meta.dirname);

export interface Span {
  readonly service: string;
  readonly name: string;
  /** `server`, `client` … */
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly startMicros: number;
  readonly endMicros: number;
  /** The span's own, and those of its resource. */
  readonly tags: Readonly<Record<string, unknown>>;
}

interface JaegerTag {
  readonly key: string;
  readonly value: unknown;
}

interface JaegerTrace {
  readonly spans: readonly {
    readonly traceID: string;
    readonly spanID: string;
    readonly operationName: string;
    readonly processID: string;
    readonly startTime: number;
    readonly duration: number;
    readonly references: readonly { readonly refType: string; readonly spanID: string }[];
    readonly tags: readonly JaegerTag[];
  }[];
  readonly processes: Readonly<Record<string, { readonly serviceName: string; readonly tags?: readonly JaegerTag[] }>>;
}

/** Where OTLP is taken. */
export interface OtlpPorts {
  readonly address: string;
  readonly grpc: number;
  readonly http: number;
}

/** Where spans are taken. */
export interface SpanPorts extends OtlpPorts {
  readonly zipkin: number;
}

export class Jaeger implements AsyncDisposable {
  readonly ports: SpanPorts;
  readonly #server: StartedProcess;
  readonly #queryUrl: string;

  private constructor(ports: SpanPorts, server: StartedProcess, queryUrl: string) {
    this.ports = ports;
    this.#server = server;
    this.#queryUrl = queryUrl;
  }

  /** At free ports, or where another one was. */
  static async start(program: string, ports?: SpanPorts): Promise<Jaeger> {
    const at = ports ?? {
      address: "127.0.0.1",
      grpc: await freePort(),
      http: await freePort(),
      zipkin: await freePort(),
    };
    const query = await freePort();
    const portsOf = {
      "collector.otlp.grpc": at.grpc,
      "collector.otlp.http": at.http,
      "collector.zipkin": at.zipkin,
      "collector.grpc-server": await freePort(),
      "collector.http-server": await freePort(),
      "query.http-server": query,
      "query.grpc-server": await freePort(),
    };
    const args = Object.entries(portsOf).map(([flag, port]) => `--${flag}.host-port=${at.address}:${port}`);
    const server = await startProcess(program, ["jaeger", ...args], { name: "jaeger" });
    const queryUrl = `http://${at.address}:${query}`;
    const answers = (): Promise<boolean> =>
      fetch(`${queryUrl}/api/services`).then(
        (answer) => answer.ok,
        () => false,
      );
    await waitFor(answers, { what: "Jaeger", details: () => server.output() });
    return new Jaeger(at, server, queryUrl);
  }

  /** It answers nobody any more, and keeps its connections. */
  halt(): void {
    this.#server.kill("SIGSTOP");
  }

  /** As a client sends its spans that has Zipkin's library. */
  async addZipkinSpan(span: object): Promise<void> {
    const url = `http://${this.ports.address}:${this.ports.zipkin}/api/v2/spans`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify([span]) });
    assert.equal(answer.status, 202, await answer.text());
  }

  /** All spans of each trace in which the service had a part, traces in no order. */
  async traces(service: string): Promise<readonly (readonly Span[])[]> {
    const answer = await fetch(`${this.#queryUrl}/api/traces?limit=1500&service=${encodeURIComponent(service)}`);
    const { data } = (await answer.json()) as { readonly data: readonly JaegerTrace[] };
    return data.map(spansOf);
  }

  /** All traces as Jaeger's answers have them, to be searched. */
  async everything(): Promise<string> {
    const answer = await fetch(`${this.#queryUrl}/api/services`);
    const { data: services } = (await answer.json()) as { readonly data: readonly string[] };
    const pages = services.map(async (service) => {
      const page = await fetch(`${this.#queryUrl}/api/traces?limit=1500&service=${encodeURIComponent(service)}`);
      return page.text();
    });
    return (await Promise.all(pages)).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // One that was halted hears of nothing else.
    await this.#server.stop({ signal: "SIGKILL" });
  }
}

function spansOf({ spans, processes }: JaegerTrace): readonly Span[] {
  return spans.map(({ traceID, spanID, operationName, processID, startTime, duration, references, tags }) => {
    const own = processes[processID]!;
    const byKey = Object.fromEntries([...(own.tags ?? []), ...tags].map(({ key, value }) => [key, value]));
    return {
      service: own.serviceName,
      name: operationName,
      kind: String(byKey["span.kind"]),
      traceId: traceID,
      spanId: spanID,
      parentId: references.find(({ refType }) => refType === "CHILD_OF")?.spanID,
      startMicros: startTime,
      endMicros: startTime + duration,
      tags: byKey,
    };
  });
}

/** A collector that takes OTLP at these ports and passes all on to another, by gRPC. */
export async function startCollector(program: string, own: OtlpPorts, next: OtlpPorts): Promise<AsyncDisposable> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-collector-"));
  const open = new AsyncDisposableStack();
  open.defer(() => rm(folder, { recursive: true, force: true }));
  const config = {
    receivers: {
      otlp: {
        protocols: {
          grpc: { endpoint: `${own.address}:${own.grpc}` },
          http: { endpoint: `${own.address}:${own.http}` },
        },
      },
    },
    exporters: { otlp: { endpoint: `${next.address}:${next.grpc}`, tls: { insecure: true }, compression: "none" } },
    service: {
      // It would listen at a port of everybody's.
      telemetry: { metrics: { level: "none" } },
      pipelines: {
        traces: { receivers: ["otlp"], exporters: ["otlp"] },
        metrics: { receivers: ["otlp"], exporters: ["otlp"] },
      },
    },
  };
  const file = path.join(folder, "collector.yaml");
  // JSON is YAML.
  await writeFile(file, JSON.stringify(config));
  const collector = open.use(await startProcess(program, ["collector", "--config", `file:${file}`]));
  await collector.waitForOutput(/Everything is ready/);
  return open;
}

interface Placed extends Span {
  readonly depth: number;
  /** It names a parent that nobody sent. */
  readonly isOrphan: boolean;
}

/** Each span behind its parent, those of one parent as they began; Tulle's beginnings are whole milliseconds. */
export function inOrder(spans: readonly Span[]): readonly Placed[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const below = (parent: Span | undefined, depth: number): Placed[] =>
    spans
      .filter(({ parentId }) => (parent === undefined ? !ids.has(parentId ?? "") : parentId === parent.spanId))
      .sort((one, other) => one.startMicros - other.startMicros || one.endMicros - other.endMicros)
      .flatMap((span) => [
        { ...span, depth, isOrphan: parent === undefined && span.parentId !== undefined },
        ...below(span, depth + 1),
      ]);
  return below(undefined, 0);
}

/** A trace as lines, each below its parent and further in: service, kind, name. */
export function treeOf(spans: readonly Span[]): readonly string[] {
  return inOrder(spans).map(({ service, kind, name, depth, isOrphan }) => {
    const missing = isOrphan ? " (its parent is missing)" : "";
    return `${"  ".repeat(depth)}${service} ${kind} ${name}${missing}`;
  });
}
