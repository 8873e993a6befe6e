// Two sidecars of one kind, a client's and a server's, under the control plane's own stages: the same manifests become
// the same xDS for Tulle's proxy and for Envoy, so that nobody is measured with a configuration that was written for a
// bench.
import { mkdir, mkdtemp, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { MeshedProxies, RunningPod } from "../../tests/tools/meshed-proxies.ts";
import { waitFor } from "../../tests/tools/processes.ts";
import { checkAccessLog } from "../measure/check-access-log.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { LoadResult } from "../measure/run-wrk.ts";
import { startBackend } from "../one-proxy/backend.ts";
import { runLoad, type Work } from "../one-proxy/work.ts";
import { importFrom, nodeOf } from "../tree.ts";
import type { SidecarKind } from "./sidecar-kinds.ts";

export const proxyCore = 0;
export const loadCore = 1;
const port = 3000;
const outboundPort = 15_007;

export type Side = "client" | "server";
export const sides: readonly Side[] = ["client", "server"];

export interface SidecarPairOptions {
  /** Of the pair, when others of its kind run beside it. */
  readonly name: string;
  readonly kind: SidecarKind;
  readonly work: Work;
  /** Policies, as a user writes them. */
  readonly manifests: string;
  /** `name: value`, of every request. */
  readonly headers: readonly string[];
}

export interface SideUsage {
  readonly cpuMicrosecondsPerRequest: number;
  readonly residentBytes: number;
}

export interface PairRound extends LoadResult {
  readonly usage: Readonly<Record<Side, SideUsage>>;
}

type MeshTools = typeof import("../../tests/tools/meshed-proxies.ts");
type LocalPlatform = typeof import("@tulle/local");

/** `load → client sidecar → mTLS → server sidecar → application`; both sidecars on one core, all else on the other. */
export class SidecarPair implements AsyncDisposable {
  readonly name: string;
  readonly mesh: MeshedProxies;
  readonly #folder: string;
  readonly #work: Work;
  readonly #headers: readonly string[];

  private constructor(options: SidecarPairOptions, mesh: MeshedProxies, folder: string) {
    this.name = options.name;
    this.mesh = mesh;
    this.#folder = folder;
    this.#work = options.work;
    const isHttp2 = options.work.protocol === "HTTP/2";
    this.#headers = [`${isHttp2 ? ":authority" : "Host"}: server:${port}`, ...options.headers];
  }

  /** Resolves once requests go through. */
  static async start(options: SidecarPairOptions): Promise<SidecarPair> {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
    const { kind, work } = options;
    const { proxy, tree } = kind;
    const tools = (await importFrom(tree, "tests/tools/meshed-proxies.ts")) as MeshTools;
    const { sidecarNodeOptions } = (await importFrom(tree, "packages/local/src/index.ts")) as LocalPlatform;
    const mesh = await tools.MeshedProxies.start({
      pods: sides.map((name) => ({ name, namespace: "shop", proxy })),
      ports: [port],
      protocols: { [port]: portProtocol(work) },
      manifests: options.manifests,
      startApplication: async (pod) => {
        const own = path.join(folder, `app-${pod.name}`);
        await mkdir(own);
        return startBackend(work, own, `${pod.appAddress}:${port}`, loadCore);
      },
      wrapCommand: (pod, command, args) =>
        // The access log goes to standard output, as Istio's; here that is a file. The agent tells peers of the
        // workload, and `tulle up` gives Tulle's sidecars less memory for what is short-lived.
        onCore(proxyCore, "sh", [
          "-c",
          'log=$1; export TULLE_PEER_METADATA="$2" NODE_OPTIONS="$3"; shift 3; exec "$@" >> "$log"',
          "sh",
          logOf(folder, pod),
          peerMetadata(pod),
          sidecarNodeOptions,
          proxy === "tulle" ? nodeOf(tree) : command,
          ...args,
        ]),
    });
    const pair = new SidecarPair(options, mesh, folder);
    try {
      await pair.#waitUntilServed();
    } catch (error) {
      await pair[Symbol.asyncDispose]();
      throw error;
    }
    return pair;
  }

  /** The address of the server's sidecar, which speaks mTLS. */
  get serverAddress(): { readonly host: string; readonly port: number } {
    return { host: this.mesh.pod("server").address, port };
  }

  load(seconds: number): Promise<LoadResult> {
    const origin = `http://${this.mesh.pod("client").address}:${outboundPort}`;
    return runLoad(this.#work, { origin, seconds, folder: this.#folder, core: loadCore, headers: this.#headers });
  }

  async measure(seconds: number): Promise<PairRound> {
    for (const side of sides) await truncate(logOf(this.#folder, this.mesh.pod(side)));
    const before = await this.#usage();
    const result = await this.load(seconds);
    const after = await this.#usage();
    for (const side of sides)
      await checkAccessLog(`${this.name}, ${side} side`, logOf(this.#folder, this.mesh.pod(side)), result.requests);
    const usageOf = (side: Side): SideUsage => ({
      cpuMicrosecondsPerRequest: ((after[side].cpuSeconds - before[side].cpuSeconds) / result.requests) * 1e6,
      residentBytes: after[side].residentBytes,
    });
    return { ...result, usage: { client: usageOf("client"), server: usageOf("server") } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.mesh[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #usage() {
    const [client, server] = await Promise.all(sides.map((side) => readProcessUsage(this.mesh.processId(side))));
    return { client: client!, server: server! };
  }

  async #waitUntilServed(): Promise<void> {
    const isServed = async (): Promise<boolean> => {
      // The load itself: `fetch` would not let us choose the Host.
      const load = await this.load(1);
      return load.requests > 0;
    };
    await waitFor(isServed, {
      what: `${this.name} to answer`,
      timeoutMs: 30_000,
      details: () => sides.map((side) => this.mesh.output(side)).join("\n"),
    });
  }
}

/** As the name of the server's port says it. */
function portProtocol({ protocol, isGrpc }: Work): string {
  if (isGrpc) return "grpc";
  return protocol === "HTTP/2" ? "http2" : "http";
}

/** As the agent writes it. */
function peerMetadata({ name, namespace }: RunningPod): string {
  const labels = {
    workload: name,
    workload_namespace: namespace,
    app: name,
    version: "v1",
    canonical_service: name,
    canonical_revision: "v1",
    cluster: "Kubernetes",
  };
  return Buffer.from(JSON.stringify(labels)).toString("base64");
}

function logOf(folder: string, pod: Pick<RunningPod, "name">): string {
  return path.join(folder, `${pod.name}.log`);
}
