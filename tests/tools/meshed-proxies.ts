// A small mesh for tables of calls over mutual TLS: manifests through the control plane's own stages, served by ADS to
// real proxies of both kinds, each with a certificate of its own. No agent and no supervisor: a row may have any
// identity it likes.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import http2 from "node:http2";
import type { Server } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints, buildSnapshot, parseNode, scope, TranslationCache } from "@tulle/control-plane/stages";
import { type AdsConnection, type RunningAdsServer, serveAds } from "@tulle/xds";
import { callWithin } from "./call-within.ts";
import { envoyPath } from "./envoy-path.ts";
import type { NetworkNamespace } from "./network-namespace.ts";
import { freeAddressBlock, type StartedProcess, startProcess, waitFor } from "./processes.ts";
import { resourcesFrom, serveSecrets, TestAuthority, workloadSecrets } from "./workload-secrets.ts";

export type ProxyKind = "tulle" | "envoy";

/** A pod with a proxy. `name` is its app label, its Service and its service account too. */
export interface MeshedPod {
  readonly name: string;
  readonly namespace: string;
  readonly proxy: ProxyKind;
  /** Besides `app`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** A gateway has no application; Gateways select it by its label `app`. */
  readonly isGateway?: true;
}

export interface RunningPod extends MeshedPod {
  readonly address: string;
  readonly appAddress: string;
  /** Missing in the test's own. */
  readonly network?: NetworkNamespace;
}

const cli = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
const adminPort = 15_000;
const warmingListenersPage = "/stats?filter=listener_manager.total_listeners_warming";
const types = ["CDS", "EDS", "LDS", "RDS"] as const;

/** A network that is not the test's own, with addresses of it. */
export interface PodPlace {
  readonly network: NetworkNamespace;
  readonly address: string;
  readonly appAddress: string;
}

export interface MeshedProxiesOptions {
  readonly pods: readonly MeshedPod[];
  /** Ports of each pod's application; the Service has the same. */
  readonly ports: readonly number[];
  /** What the Service says that they speak; `http` where nothing stands. */
  readonly protocols?: Readonly<Record<number, string>>;
  /** Policies and rules, as a user writes them. */
  readonly manifests: string;
  /** Roots that the proxies believe besides their own, in PEM. */
  readonly furtherRootsPem?: string;
  /** Further variables of each proxy's environment. */
  readonly proxyEnvironment?: Readonly<Record<string, string>>;
  /** Further fields of a proxy's bootstrap, and clusters of it. */
  readonly bootstrapOf?: (
    pod: RunningPod,
  ) => { readonly clusters: readonly object[]; readonly fields: object } | undefined;
  /** Where a pod is; at loopback addresses of its own when missing. */
  readonly placeOf?: (pod: MeshedPod) => PodPlace;
  /** In the place of the applications that tell what they got. */
  readonly startApplication?: (pod: RunningPod) => Promise<AsyncDisposable>;
  /** What a proxy is really started by, such as the same command on one core. */
  readonly wrapCommand?: (
    pod: RunningPod,
    command: string,
    args: readonly string[],
  ) => readonly [string, readonly string[]];
}

interface Asked {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export class MeshedProxies implements AsyncDisposable {
  readonly authority: TestAuthority;
  readonly #options: MeshedProxiesOptions;
  readonly #pods: readonly RunningPod[];
  readonly #open = new AsyncDisposableStack();
  readonly #connections = new Set<AdsConnection>();
  readonly #processes = new Map<string, StartedProcess>();
  readonly #cache = new TranslationCache("local");
  #store = new MemoryStore();

  private constructor(authority: TestAuthority, options: MeshedProxiesOptions, block: string) {
    this.authority = authority;
    this.#options = options;
    this.#pods = options.pods.map((pod, index) => ({
      ...pod,
      address: `${block}.${index + 1}`,
      appAddress: `${block}.${index + 101}`,
      ...options.placeOf?.(pod),
    }));
  }

  /** Resolves once every proxy has all its listeners. */
  static async start(options: MeshedProxiesOptions): Promise<MeshedProxies> {
    // Listeners have fixed ports: a block of loopback addresses of its own lets several runs stand side by side.
    const block = await freeAddressBlock();
    const mesh = new MeshedProxies(await TestAuthority.create(), options, block);
    try {
      await mesh.#run();
      return mesh;
    } catch (error) {
      await mesh[Symbol.asyncDispose]();
      throw error;
    }
  }

  pod(name: string): RunningPod {
    const pod = this.#pods.find((each) => each.name === name);
    assert.ok(pod, `no pod ${name}`);
    return pod;
  }

  /** Other policies and rules in place of those before, for every proxy at once. */
  async setManifests(manifests: string): Promise<void> {
    await this.#load(manifests);
    for (const connection of this.#connections) this.#declare(connection);
  }

  /** Once every proxy has acknowledged what was declared last, and none of its listeners waits for anything. */
  async settled(): Promise<void> {
    const isSettled = async (): Promise<boolean> => {
      const statuses = [...this.#connections].flatMap((connection) => [...connection.status().values()]);
      assert.deepEqual(
        statuses.flatMap(({ rejected }) => rejected),
        [],
      );
      if (statuses.some(({ state }) => state === "STALE")) return false;
      const pages = await Promise.all(this.#pods.map(({ name }) => this.admin(name, warmingListenersPage)));
      return pages.every((page) => page.endsWith(": 0\n"));
    };
    await waitFor(isSettled, { what: "acknowledged listeners", intervalMs: 5 });
  }

  /** What a proxy has written so far. */
  output(name: string): string {
    return this.#processes.get(name)?.output() ?? "";
  }

  processId(name: string): number {
    const proxy = this.#processes.get(name);
    assert.ok(proxy, `no proxy ${name}`);
    return proxy.pid;
  }

  async admin(name: string, page: string, method = "GET"): Promise<string> {
    const { body } = await askAdmin(this.pod(name), page, method);
    return body;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync();
  }

  async #run(): Promise<void> {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-meshed-"));
    this.#open.defer(() => rm(folder, { recursive: true, force: true }));
    await this.#load(this.#options.manifests);
    const xdsPath = path.join(folder, "xds.sock");
    const server = await serveAds({
      address: { path: xdsPath },
      handlers: {
        onConnect: (connection) => {
          this.#connections.add(connection);
          this.#declare(connection);
        },
        onSubscribe: () => undefined,
        onDisconnect: (connection) => void this.#connections.delete(connection),
      },
    });
    this.#open.defer(() => server.close());
    const applied = this.#pods.filter(({ isGateway }) => isGateway !== true);
    await Promise.all(applied.map((pod) => this.#startApps(pod)));
    await Promise.all(this.#pods.map((pod) => this.#startProxy(pod, folder, xdsPath)));
    await Promise.all(this.#pods.map((pod) => this.#waitUntilReady(pod, server)));
  }

  async #load(manifests: string): Promise<void> {
    const text = [...this.#pods.map((pod) => manifestsOf(pod, this.#options)), manifests];
    const { resources, findings } = loadText(text.join("\n---\n"), "mesh.yaml");
    assert.deepEqual(
      findings.filter(({ severity }) => severity === "error"),
      [],
    );
    this.#store = new MemoryStore();
    await this.#store.applyAll(resources);
  }

  #declare(connection: AdsConnection): void {
    const parsed = parseNode(connection.node);
    assert.ok("proxy" in parsed);
    const snapshot = buildSnapshot(this.#store, { trustDomain: this.authority.trustDomain });
    const endpoints = buildEndpoints(this.#store, snapshot);
    const resources = this.#cache.resources(scope(snapshot, parsed.proxy, endpoints), endpoints);
    for (const type of types) connection.set(type, resources[type]);
  }

  /** Each tells who it is and what it got; those that speak `http2` have trailers. */
  async #startApps(pod: RunningPod): Promise<void> {
    const { startApplication } = this.#options;
    if (startApplication !== undefined) {
      this.#open.use(await startApplication(pod));
      return;
    }
    const { name, appAddress } = pod;
    const { ports, protocols = {} } = this.#options;
    for (const port of ports) {
      const bodyOf = ({ method, url, headers }: Asked): string =>
        JSON.stringify({ app: name, port, method, path: url, headers });
      const http1 = createServer((request, response) => {
        response.writeHead(200, { "content-type": "application/json" }).end(bodyOf(request));
      });
      const overHttp2 = http2.createServer((request, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.addTrailers({ "x-end": "told" });
        response.end(bodyOf(request));
      });
      const server = protocols[port] === "http2" ? overHttp2 : http1;
      await listen(server, port, appAddress);
      this.#open.defer(async () => {
        http1.closeAllConnections();
        await server[Symbol.asyncDispose]();
      });
    }
  }

  async #startProxy(pod: RunningPod, folder: string, xdsPath: string): Promise<void> {
    const issued = await this.authority.issue(pod.namespace, pod.name);
    const roots = issued.rootsPem + (this.#options.furtherRootsPem ?? "");
    const socketPath = path.join(folder, `${pod.name}.sock`);
    const secrets = await serveSecrets(socketPath, workloadSecrets({ ...issued, rootsPem: roots }));
    this.#open.defer(() => secrets.close());
    const bootstrap = path.join(folder, `${pod.name}.json`);
    const { clusters = [], fields = {} } = this.#options.bootstrapOf?.(pod) ?? {};
    await writeFile(bootstrap, JSON.stringify({ ...bootstrapOf(pod, xdsPath, socketPath, clusters), ...fields }));
    const env = { ...this.#options.proxyEnvironment, TULLE_PEER_METADATA: `of ${pod.name}` };
    const options = { name: `${pod.proxy} of ${pod.name}`, env };
    const plain: readonly [string, readonly string[]] =
      pod.proxy === "tulle"
        ? [process.execPath, [cli, "proxy", "-c", bootstrap, "-l", "warning"]]
        : [await envoyPath(), ["-c", bootstrap, ...envoyArguments]];
    const [command, args] = this.#options.wrapCommand?.(pod, ...plain) ?? plain;
    const [first, ...words] = [...(pod.network?.enter ?? []), command, ...args];
    const proxy = await startProcess(first!, words, options);
    this.#processes.set(pod.name, proxy);
    this.#open.defer(async () => void (await proxy.stop()));
  }

  async #waitUntilReady(pod: RunningPod, server: RunningAdsServer): Promise<void> {
    const isReady = async (): Promise<boolean> => {
      const rejected = server.connections
        .filter(({ node }) => node.id.includes(`~${pod.name}.`))
        .flatMap((connection) => [...connection.status().values()].flatMap((status) => status.rejected));
      if (rejected.length > 0) return true;
      const { status } = await askAdmin(pod, "/ready");
      return status === 200;
    };
    const details = (): string => this.output(pod.name);
    await waitFor(isReady, { what: `the proxy of ${pod.name}`, intervalMs: 100, details });
    const refused = server.connections.flatMap((each) =>
      [...each.status().values()].flatMap(({ rejected }) => rejected),
    );
    assert.deepEqual(refused, []);
  }
}

async function askAdmin(
  { address, network }: RunningPod,
  page: string,
  method = "GET",
): Promise<{ readonly status: number; readonly body: string }> {
  if (network !== undefined) return callWithin(network, { ip: address, port: adminPort, path: page, method });
  const response = await fetch(`http://${address}:${adminPort}${page}`, { method });
  return { status: response.status, body: await response.text() };
}

const envoyArguments = [
  "--disable-hot-restart",
  "--concurrency",
  "1",
  "-l",
  "warning",
  "--file-flush-interval-msec",
  "100",
];

/** As the agent writes it; spans leave one by one, as there are few. */
const runtimeOfEnvoy = {
  "re2.max_program_size.error_level": 32_768,
  "tracing.opentelemetry.min_flush_spans": 1,
  "tracing.zipkin.min_flush_spans": 1,
};

function listen(server: Server, port: number, host: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(port, host, resolve);
  return promise;
}

/** The pod as the platform would publish it: Service, Pod and EndpointSlice. */
function manifestsOf(
  { name, namespace, address, labels = {} }: RunningPod,
  { ports, protocols = {} }: MeshedProxiesOptions,
): string {
  const named = ports.map((port) => ({ name: `${protocols[port] ?? "http"}-${port}`, port }));
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: { selector: { app: name }, ports: named },
  };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: { ...labels, app: name, "security.istio.io/tlsMode": "istio" } },
    spec: { serviceAccountName: name, containers: [{ name: "app" }] },
  };
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace, labels: { "kubernetes.io/service-name": name } },
    addressType: "IPv4",
    ports: named,
    endpoints: [{ addresses: [address], targetRef: { kind: "Pod", name, namespace } }],
  };
  return [service, pod, slice].map((resource) => JSON.stringify(resource)).join("\n---\n");
}

/** As the agent writes it, but for the place of the control plane. */
function bootstrapOf(
  { name, namespace, address, appAddress, labels = {}, isGateway }: RunningPod,
  xdsPath: string,
  sdsPath: string,
  clusters: readonly object[],
): object {
  return {
    node: {
      id: `${isGateway === true ? "router" : "sidecar"}~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
      cluster: `${name}.${namespace}`,
      metadata: {
        NAMESPACE: namespace,
        INTERCEPTION_MODE: "NONE",
        ...(isGateway === true ? {} : { APP_ADDRESS: appAddress }),
        LABELS: { ...labels, app: name },
      },
    },
    admin: { address: { socket_address: { address, port_value: adminPort } } },
    cluster_manager: { upstream_bind_config: { source_address: { address, port_value: 0 } } },
    ...resourcesFrom(xdsPath, sdsPath, clusters),
    layered_runtime: { layers: [{ name: "mesh", static_layer: runtimeOfEnvoy }] },
  };
}
