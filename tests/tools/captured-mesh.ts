// Pods that are network namespaces on one bridge, whose connections the kernel leads through their sidecars, of either
// kind, by the rules of `tulle capture`. The control plane's own stages say what the sidecars get, over Unix sockets.
// For a stage that runs as root in a network of its own.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type CaptureSettings, installCapture, planCapture } from "@tulle/capture";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints, buildSnapshot, parseNode, scope, TranslationCache } from "@tulle/control-plane/stages";
import { type AdsConnection, type RunningAdsServer, serveAds } from "@tulle/xds";
import { envoyPath } from "./envoy-path.ts";
import type { ProxyKind } from "./meshed-proxies.ts";
import { NetworkNamespace } from "./network-namespace.ts";
import { startProcess, type StartedProcess, waitFor } from "./processes.ts";
import { resourcesFrom, serveSecrets, TestAuthority, workloadSecrets } from "./workload-secrets.ts";

export interface CapturedPod {
  /** Its service account too. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The first two are its addresses of IPv4 and IPv6. */
  readonly ips: readonly string[];
  readonly network: NetworkNamespace;
}

/** Programs of this group and any user are the proxy's own. */
export const proxyGroup = 1337;
export const bridge = "br0";
/** The bridge's own, where nobody answers: what is not captured ends there. */
const nowhere = ["10.88.255.254", "fd88::ffff"] as const;
const types = ["CDS", "EDS", "LDS", "RDS"] as const;
const cli = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");

export class CapturedMesh implements AsyncDisposable {
  /** The machine that the pods are plugged into. */
  readonly node: NetworkNamespace;
  /** Goes with the mesh. */
  readonly folder: string;
  readonly #open = new AsyncDisposableStack();
  readonly #authority: TestAuthority;
  readonly #cache = new TranslationCache("local");
  readonly #connections = new Set<AdsConnection>();
  #ads: RunningAdsServer | undefined;
  #store = new MemoryStore();
  #podCount = 0;

  private constructor(node: NetworkNamespace, folder: string, authority: TestAuthority) {
    this.node = this.#open.use(node);
    this.folder = folder;
    this.#authority = authority;
    this.#open.defer(() => rm(folder, { recursive: true, force: true }));
  }

  static async open(manifests: string): Promise<CapturedMesh> {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-captured-"));
    const mesh = new CapturedMesh(await NetworkNamespace.create(), folder, await TestAuthority.create());
    await mesh.setManifests(manifests);
    const ip = (line: string): Promise<string> => mesh.node.mustRun("ip", ...line.split(" "));
    // A bridge learns for a while before it passes anything on, unless it is told not to.
    await ip(`link add ${bridge} type bridge forward_delay 0`);
    await ip(`link set ${bridge} up`);
    await ip(`address add ${nowhere[0]}/16 dev ${bridge}`);
    await ip(`address add ${nowhere[1]}/64 dev ${bridge} nodad`);
    mesh.#ads = await serveAds({
      address: { path: mesh.#xdsPath },
      handlers: {
        onConnect: (connection) => {
          mesh.#connections.add(connection);
          mesh.#declare(connection);
        },
        onSubscribe: () => undefined,
        onDisconnect: (connection) => void mesh.#connections.delete(connection),
      },
    });
    mesh.#open.defer(() => mesh.#ads!.close());
    return mesh;
  }

  /** A network on the bridge, without a proxy: nothing is captured yet. */
  async addPod(
    name: string,
    ips: readonly string[],
    labels: CapturedPod["labels"] = { app: name },
  ): Promise<CapturedPod> {
    const network = this.#open.use(await NetworkNamespace.create());
    const port = `pod${(this.#podCount += 1)}`;
    await network.connect(this.node, "eth0", port);
    await this.node.mustRun("ip", "link", "set", port, "master", bridge);
    const ip = (...args: readonly string[]): Promise<string> => network.mustRun("ip", ...args);
    for (const each of ips) {
      const [length, ...more] = each.includes(":") ? [64, "nodad"] : [16];
      await ip("address", "add", `${each}/${length}`, "dev", "eth0", ...more.map(String));
    }
    for (const gateway of nowhere) await ip("route", "add", "default", "via", gateway);
    return { name, labels, ips, network };
  }

  /**
   * Captures all connections of the pod. Resolves once its proxy has its listeners. `hosts` is the proxy's /etc/hosts;
   * then nobody answers it for other names.
   */
  async startProxy(
    pod: CapturedPod,
    kind: ProxyKind,
    settings: CaptureSettings = {},
    hosts?: string,
  ): Promise<StartedProcess> {
    const { plan, problems } = planCapture(settings);
    assert.ok(plan, JSON.stringify(problems));
    await installCapture(plan, { prefix: pod.network.enter });
    // From there the proxy calls the application.
    await pod.network.mustRun("ip", "-6", "address", "add", "::6/128", "dev", "lo", "preferred_lft", "0");
    const sdsPath = path.join(this.folder, `${pod.name}.sock`);
    const secrets = await serveSecrets(sdsPath, workloadSecrets(await this.#authority.issue("shop", pod.name)));
    this.#open.defer(() => secrets.close());
    const bootstrap = path.join(this.folder, `${pod.name}.json`);
    await writeFile(bootstrap, JSON.stringify(this.#bootstrapOf(pod, sdsPath, plan.mode)));
    const program =
      kind === "tulle"
        ? [process.execPath, cli, "proxy", "-c", bootstrap, "-l", "warning"]
        : [await envoyPath(), "-c", bootstrap, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"];
    const asProxy = ["setpriv", `--regid=${proxyGroup}`, "--clear-groups"];
    const env = { TULLE_PEER_METADATA: `of ${pod.name}` };
    const names = hosts === undefined ? [] : await this.#withHosts(pod, hosts);
    const started = await this.start(pod, [...names, ...asProxy, ...program], `${kind} of ${pod.name}`, env);
    const isReady = async (): Promise<boolean> =>
      (await pod.network.run("curl", "-fs", "http://127.0.0.1:15000/ready")).code === 0;
    await waitFor(isReady, {
      what: `the proxy of ${pod.name}`,
      details: () => JSON.stringify(this.#statuses()) + started.output(),
    });
    return started;
  }

  /** A program in the pod, which ends with the mesh. */
  async start(
    { network }: CapturedPod,
    command: readonly string[],
    name = command[0]!,
    env: Readonly<Record<string, string>> = {},
  ): Promise<StartedProcess> {
    return this.#open.use(await startProcess("env", ["--", ...network.enter, ...command], { name, env }));
  }

  async setManifests(text: string): Promise<void> {
    const { resources, findings } = loadText(text, "mesh.yaml");
    assert.deepEqual(
      findings.filter(({ severity }) => severity === "error"),
      [],
    );
    this.#store = new MemoryStore();
    await this.#store.applyAll(resources);
    for (const connection of this.#connections) this.#declare(connection);
  }

  /** Once every proxy has answered to what was declared last. */
  async settled(): Promise<void> {
    const isSettled = (): boolean => this.#statuses().every(([, { state }]) => state !== "STALE");
    await waitFor(isSettled, { what: "acknowledged resources", details: () => JSON.stringify(this.#statuses()) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync();
  }

  /** Runs what stands behind it with files of names that nobody else sees. */
  async #withHosts({ name }: CapturedPod, hosts: string): Promise<readonly string[]> {
    const files = { hosts, "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n" };
    const mounts: string[] = [];
    for (const [file, text] of Object.entries(files)) {
      const own = path.join(this.folder, `${name}.${file}`);
      await writeFile(own, text);
      mounts.push(`mount --bind ${own} /etc/${file} &&`);
    }
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", `${mounts.join(" ")} exec "$@"`, "names"];
  }

  get #xdsPath(): string {
    return path.join(this.folder, "xds.sock");
  }

  #statuses() {
    return [...this.#connections].flatMap((each) => [...each.status()]);
  }

  #declare(connection: AdsConnection): void {
    const parsed = parseNode(connection.node);
    assert.ok("proxy" in parsed);
    const snapshot = buildSnapshot(this.#store, { trustDomain: this.#authority.trustDomain });
    const endpoints = buildEndpoints(this.#store, snapshot);
    const resources = this.#cache.resources(scope(snapshot, parsed.proxy, endpoints), endpoints);
    for (const type of types) connection.set(type, resources[type]);
  }

  #bootstrapOf({ name, labels, ips }: CapturedPod, sdsPath: string, mode: string): unknown {
    return {
      node: {
        id: `sidecar~${ips[0]}~${name}.shop~shop.svc.cluster.local`,
        cluster: `${name}.shop`,
        metadata: { NAMESPACE: "shop", INTERCEPTION_MODE: mode, INSTANCE_IPS: ips.join(), LABELS: labels },
      },
      admin: { address: { socket_address: { address: "127.0.0.1", port_value: 15_000 } } },
      ...resourcesFrom(this.#xdsPath, sdsPath),
    };
  }
}
