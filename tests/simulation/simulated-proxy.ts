// A proxy of a golden case, compiled by Tulle's own compiler and asked about single requests: the listener, the virtual
// host, the route and the cluster that a request would meet, without a socket.
import { readFile } from "node:fs/promises";
import path from "node:path";
import assert from "node:assert/strict";
import { parse } from "yaml";
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import type { ProxyResources } from "@tulle/control-plane/stages";
import {
  compileCluster,
  type Compiled,
  type CompileScope,
  compileEndpoints,
  compileListener,
  compileRouteConfiguration,
  detachedScope,
  HeaderMap,
  HttpConnectionManager,
  problemText,
  StreamInfo,
} from "@tulle/proxy";
import { messageFromJson } from "@tulle/xds/json";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { goldenFolder } from "../golden/golden-cases.ts";
import { GoldenFiles } from "../golden/golden-files.ts";

export interface Call {
  /** Where the client connects: `address:port` of a listener. */
  readonly to: string;
  /** `GET` unless said. */
  readonly method?: string;
  /** `http` unless said. */
  readonly scheme?: string;
  readonly host: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** In [0, 1): decides among weighted clusters. */
  readonly random?: number;
}

/** What becomes of a call: the refusal, or where it goes and how. */
export type Outcome =
  | { readonly status: number }
  | {
      readonly virtualHost: string;
      readonly cluster: string;
      readonly timeoutMs: number;
      /** Most retries after the first try; undefined without a policy. */
      readonly retries: number | undefined;
      readonly perTryTimeoutMs: number | undefined;
      /** Endpoints of the cluster. */
      readonly endpoints: readonly string[];
      /** The peer-metadata header as it leaves. */
      readonly peerMetadata: string | undefined;
    };

type Messages = {
  readonly [T in "CDS" | "EDS" | "LDS" | "RDS"]: readonly MessageShape<(typeof resourceSchemas)[T]>[];
};

type ListenerOf = Extract<ReturnType<typeof compileListener>, { ok: true }>["value"]["listener"];

export class SimulatedProxy {
  readonly #listeners: readonly ListenerOf[];
  readonly #endpoints: ReadonlyMap<string, readonly string[]>;

  private constructor(listeners: readonly ListenerOf[], endpoints: ReadonlyMap<string, readonly string[]>) {
    this.#listeners = listeners;
    this.#endpoints = endpoints;
  }

  /** Compiles a golden file; any problem, warnings included, fails the test. */
  static async load(caseName: string, file: string): Promise<SimulatedProxy> {
    await using files = await GoldenFiles.create();
    const text = files.place(await readFile(path.join(goldenFolder, caseName, file), "utf8"));
    const lists = parse(text) as Readonly<Record<"CDS" | "EDS" | "LDS" | "RDS", readonly unknown[]>>;
    return SimulatedProxy.#compile({
      CDS: lists.CDS.map((json) => read(resourceSchemas.CDS, json)),
      EDS: lists.EDS.map((json) => read(resourceSchemas.EDS, json)),
      LDS: lists.LDS.map((json) => read(resourceSchemas.LDS, json)),
      RDS: lists.RDS.map((json) => read(resourceSchemas.RDS, json)),
    });
  }

  /** The same of what the stage `translate` made. */
  static of({ CDS, EDS, LDS, RDS }: ProxyResources): SimulatedProxy {
    return SimulatedProxy.#compile({
      CDS: [...CDS.values()].map(({ any }) => fromBinary(resourceSchemas.CDS, any.value)),
      EDS: [...EDS.values()].map(({ any }) => fromBinary(resourceSchemas.EDS, any.value)),
      LDS: [...LDS.values()].map(({ any }) => fromBinary(resourceSchemas.LDS, any.value)),
      RDS: [...RDS.values()].map(({ any }) => fromBinary(resourceSchemas.RDS, any.value)),
    });
  }

  static #compile({ CDS, EDS, LDS, RDS }: Messages): SimulatedProxy {
    const scope = detachedScope({ environment: { TULLE_PEER_METADATA: "who-is-calling" } });
    for (const message of CDS) valueOf(compileCluster(message, scope));
    const endpoints = new Map(
      EDS.map((message) => {
        const described = valueOf(compileEndpoints(message));
        const texts = described.map(({ address }) =>
          "ip" in address ? `${address.ip}:${address.port}` : address.path,
        );
        return [message.clusterName, texts] as const;
      }),
    );
    const listeners = LDS.map((message) => valueOf(compileListener(message, scope)).listener);
    for (const message of RDS) fillRouteTable(message, scope);
    return new SimulatedProxy(listeners, endpoints);
  }

  call({ to, method = "GET", scheme = "http", host, path: target = "/", headers = {}, random = 0 }: Call): Outcome {
    const listener = this.#listeners.find(({ addresses }) => addresses.some(({ ip, port }) => `${ip}:${port}` === to));
    assert.ok(listener, `no listener at ${to}`);
    const [localIp = "", localPort] = to.split(":");
    const chain = listener.findChain({
      localIp,
      localPort: Number(localPort),
      remoteIp: "127.0.0.1",
      directRemoteIp: "127.0.0.1",
      remotePort: 40_000,
      transportProtocol: "raw_buffer",
      serverName: "",
      applicationProtocols: [],
    });
    const manager = chain?.network;
    const table = manager instanceof HttpConnectionManager ? manager.config.routeTable.current : undefined;
    assert.ok(table, `no route table at ${to}`);
    const isConnect = method === "CONNECT";
    const request = {
      method,
      scheme,
      authority: host,
      path: isConnect ? "" : target,
      protocol: "HTTP/1.1" as const,
      upgrade: isConnect ? "connect" : undefined,
      headers: new HeaderMap(Object.entries(headers).flat()),
    };
    const match = table.match(request, () => random);
    if (match === undefined) return { status: 404 };
    const { action } = match;
    if (action.type !== "forward") return { status: action.status };
    action.finalizeRequest(request, new StreamInfo(0, 0, to, "127.0.0.1:40000", ""));
    const cluster = action.clusterSlot.name;
    return {
      virtualHost: match.virtualHostName,
      cluster,
      timeoutMs: action.timeoutMs,
      retries: action.retryPolicy?.numRetries,
      perTryTimeoutMs: action.retryPolicy?.perTryTimeoutMs,
      endpoints: this.#endpoints.get(cluster) ?? [],
      peerMetadata: request.headers.get("x-envoy-peer-metadata"),
    };
  }
}

function fillRouteTable(message: MessageShape<(typeof resourceSchemas)["RDS"]>, scope: CompileScope): void {
  scope.routeTableSlot(message.name).current = valueOf(compileRouteConfiguration(message, scope));
}

function valueOf<T>(result: Compiled<T>): T {
  const problems = result.ok ? result.warnings : result.problems;
  assert.deepEqual(problems.map(problemText), []);
  assert.ok(result.ok);
  return result.value;
}

function read<D extends DescMessage>(schema: D, json: unknown): MessageShape<D> {
  const result = messageFromJson(schema, json);
  assert.ok(result.ok, result.ok ? "" : JSON.stringify(result.problems));
  return result.message;
}
