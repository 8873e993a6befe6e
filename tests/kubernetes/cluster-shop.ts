// The sample shop on a cluster, as its README says: Tulle by Helm, then `kubectl apply -f samples/shop`. Requests come
// from beside the nodes, by the gateway's node port.
import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import path from "node:path";
import { createInterface } from "node:readline";
import { type Answer, httpRequest } from "../e2e/http-request.ts";
import type { CountedShop } from "../e2e/requests-on-their-way.ts";
import type { LoadedShop } from "../e2e/shop-load.ts";
import { parseCounts, type RequestCount } from "../e2e/shop-instance.ts";
import { testCertificate } from "../tools/certificates.ts";
import { type NodePlace, nodes } from "../tools/cluster/addresses.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { lastLines, runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const root = path.resolve(import.meta.dirname, "../..");
export const shopFolder = path.join(root, "samples/shop");
const adminPort = 15_000;

export interface ClusterPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  readonly spec: {
    readonly nodeName: string;
    readonly containers: readonly { readonly name: string }[];
    readonly initContainers?: readonly {
      readonly name: string;
      readonly image: string;
      readonly restartPolicy?: string;
    }[];
  };
  readonly status: { readonly podIP: string; readonly hostIP: string };
}

/** The release `tulle`, whole. `settings` are Helm's `--set`. */
export async function installByHelm(settings: readonly string[] = []): Promise<void> {
  const chart = path.join(root, "charts/tulle");
  // Helm takes over no object that another has made.
  await kubectl(["delete", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--ignore-not-found"]);
  const args = ["install", "tulle", chart, "-n", "tulle-system", "--create-namespace", "--wait", "--timeout", "3m"];
  await helm([...args, ...settings.flatMap((setting) => ["--set", setting])]);
}

/** Nothing of it is left when this resolves, but the definitions of its kinds. */
export async function uninstallByHelm(): Promise<void> {
  await helm(["uninstall", "tulle", "-n", "tulle-system", "--wait", "--timeout", "2m"]);
  await kubectl(["delete", "namespace", "tulle-system", "--ignore-not-found"]);
}

export async function helm(args: readonly string[]): Promise<string> {
  const result = await runCommand("helm", args, { timeoutMs: 240_000 });
  if (result.code !== 0) throw new Error(`helm ${args.join(" ")}: ${lastLines(result)}${await troubles()}`);
  return result.stdout;
}

/** For people, when something does not come up. */
export async function troubles(): Promise<string> {
  const [pods, events] = await Promise.all([
    kubectl(["get", "pods", "-A", "-o", "wide"]),
    kubectl(["get", "events", "-A", "--field-selector", "type=Warning", "--sort-by", ".lastTimestamp"]),
  ]);
  return `\n${pods}\n${events.split("\n").slice(-30).join("\n")}`;
}

export class ClusterShop implements CountedShop<ClusterPod>, LoadedShop, AsyncDisposable {
  readonly hosts = nodes.map(({ addresses }) => addresses[0]);
  /** The gateway's, of every node. */
  readonly port: number;
  readonly securePort: number;
  readonly rootFile: string;
  /** Of the user `demo`. */
  readonly demoPassword: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly #forwards = new Map<string, Promise<PortForward>>();

  private constructor(port: number, securePort: number, rootFile: string, demoPassword: string) {
    this.port = port;
    this.securePort = securePort;
    this.rootFile = rootFile;
    this.demoPassword = demoPassword;
  }

  /** Resolves when every Deployment of it is available. */
  static async apply(): Promise<ClusterShop> {
    const { certificate, key } = await testCertificate({ names: ["DNS:localhost"] });
    const folder = temporaryFolder("tulle-cluster-shop-");
    const files = { cert: path.join(folder, "tls.crt"), key: path.join(folder, "tls.key") };
    await writeFile(files.cert, certificate);
    await writeFile(files.key, key);
    const secret = ["create", "secret", "tls", "localhost-dev", "-n", "tulle-system"];
    await kubectl([...secret, `--cert=${files.cert}`, `--key=${files.key}`]);
    await kubectl(["apply", "-f", path.join(shopFolder, "0-namespaces.yaml")]);
    const [password, clientSecret] = [crypto.randomUUID(), crypto.randomUUID()];
    const demo = [`--from-literal=password=${password}`, `--from-literal=client-secret=${clientSecret}`];
    await kubectl(["create", "secret", "generic", "shop-demo", "-n", "shop", ...demo]);
    await kubectl(["apply", "-f", shopFolder]);
    for (const namespace of ["shop", "tulle-system"]) await untilAvailable(namespace);
    return new ClusterShop(await nodePortOf("http"), await nodePortOf("https"), files.cert, password);
  }

  /** By the first node's port of the gateway, over a connection that is kept. */
  get(target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return httpRequest(`http://${nodes[0].addresses[0]}:${this.port}${target}`, { headers, agent: this.#agent });
  }

  /** By a node's port of the gateway as it is now, over a new connection. */
  async getBy(node: NodePlace, target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const port = await nodePortOf("http");
    return httpRequest(`http://${node.addresses[0]}:${port}${target}`, { headers, timeoutMs: 3000 });
  }

  /** Those that do not leave. */
  async pods(): Promise<readonly ClusterPod[]> {
    const all = await Promise.all(["shop", "tulle-system"].map((namespace) => podsOf(namespace)));
    return all.flat();
  }

  async pod(prefix: string): Promise<ClusterPod> {
    const found = (await this.pods()).filter(({ metadata }) => metadata.name.startsWith(prefix));
    if (found.length !== 1) throw new Error(`${found.length} pods begin with ${prefix}${await troubles()}`);
    return found[0]!;
  }

  readonly reach = {
    admin: async (pod: ClusterPod, target: string): Promise<string> => {
      const { port } = await this.forward(pod, adminPort);
      return (await httpRequest(`http://127.0.0.1:${port}${target}`)).body;
    },
  };

  async requestCounts(): Promise<readonly RequestCount[]> {
    const pods = (await this.pods()).filter(({ metadata }) => metadata.labels["app"] !== "tulled");
    const pages = await Promise.all(pods.map((pod) => this.reach.admin(pod, "/stats/prometheus")));
    return pods.flatMap(({ metadata }, index) => parseCounts(metadata.name, pages[index]!));
  }

  /** kubectl's way to a port of the pod's localhost, kept for the next time. */
  forward({ metadata: { name, namespace } }: ClusterPod, port: number): Promise<PortForward> {
    const key = `${name} ${port}`;
    let made = this.#forwards.get(key);
    if (made === undefined) this.#forwards.set(key, (made = PortForward.open(namespace, name, port)));
    return made;
  }

  /** Faults of the catalog's programs themselves, of one version or of both. */
  async blowup(percentage: number, version?: string): Promise<void> {
    const isMeant = ({ metadata: { labels } }: ClusterPod): boolean =>
      labels["app"] === "catalog" && (version === undefined || labels["version"] === version);
    for (const pod of (await this.pods()).filter(isMeant)) {
      const { port } = await this.forward(pod, 3000);
      const body = JSON.stringify({ active: percentage > 0, type: "500", percentage });
      const headers = { "content-type": "application/json" };
      const answer = await httpRequest(`http://127.0.0.1:${port}/blowup`, { method: "POST", headers, body });
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    for (const forward of this.#forwards.values()) (await forward.catch(() => undefined))?.close();
  }
}

export async function untilAvailable(namespace: string): Promise<void> {
  const args = ["wait", "-n", namespace, "deployment", "--all", "--for=condition=Available", "--timeout=150s"];
  await kubectl(args, 180_000).catch(async (error: Error) => {
    throw new Error(`${error.message}${await troubles()}`);
  });
}

async function podsOf(namespace: string): Promise<readonly ClusterPod[]> {
  const { items } = JSON.parse(await kubectl(["get", "pods", "-n", namespace, "-o", "json"])) as {
    readonly items: readonly ClusterPod[];
  };
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function nodePortOf(name: "http" | "https"): Promise<number> {
  const filter = `jsonpath={.spec.ports[?(@.name=="${name}")].nodePort}`;
  return Number(await kubectl(["get", "service", "tulle-ingressgateway", "-n", "tulle-system", "-o", filter]));
}

class PortForward {
  readonly port: number;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.port = port;
    this.#close = close;
  }

  static async open(namespace: string, pod: string, port: number): Promise<PortForward> {
    const child = spawn("kubectl", ["port-forward", "-n", namespace, `pod/${pod}`, `:${port}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    for await (const line of createInterface({ input: child.stdout })) {
      const [, local] = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line) ?? [];
      if (local === undefined) continue;
      child.stdout.resume();
      return new PortForward(Number(local), () => child.kill());
    }
    throw new Error(`kubectl forwards no port to ${pod}`);
  }

  close(): void {
    this.#close();
  }
}
