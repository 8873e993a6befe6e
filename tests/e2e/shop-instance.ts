// A shop of the test's own: a copy of the sample, run by `tulle up` as a user would, on free ports and with its own
// registry.
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, readdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import type { Agent } from "node:http";
import { request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { json } from "node:stream/consumers";
import { ApiClient } from "@tulle/config";
import { apiSocketPath } from "@tulle/local/instance";
import { podRow, type PodRow as Pod } from "@tulle/cli/pod-row";
import { freePorts, startProcess, waitFor, type StartedProcess } from "../tools/processes.ts";
import type { OrdinaryUser } from "../tools/ordinary-user.ts";
import { mountTinyDisk, type TinyDisk } from "../tools/tiny-disk.ts";
import { type Answer, httpRequest } from "./http-request.ts";
import { type MeshVariant, variantArgs } from "./mesh-variant.ts";
import { ShopReach } from "./shop-reach.ts";

export { type Answer, httpRequest } from "./http-request.ts";
export type { Pod };

const root = path.resolve(import.meta.dirname, "../..");
export const commandEntry = path.join(root, "packages", "cli", "src", "main.ts");

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ShopOptions {
  /** With the authorization server and all that needs it. */
  readonly isWhole?: boolean;
  /** Manifests to leave out besides: what a test is not about costs its start. */
  readonly without?: readonly string[];
  /** Without it: loopback mode, Tulle's proxy. */
  readonly variant?: MeshVariant;
  /** More arguments of `tulle up`. */
  readonly args?: readonly string[];
  /** The state folder is on a file system of its own, of this size; only root may mount one. */
  readonly stateDiskBytes?: number;
  /** Changes the copied manifests before the start. */
  readonly prepare?: (folder: string) => Promise<void>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Of the copy. */
  readonly folderName?: string;
  /** Whose shop it is; only root may run one for another user. */
  readonly user?: OrdinaryUser;
}

/** What the sample runs besides the catalog and its front ends needs more than most tests are about. */
const restOfTheShop = ["oauth2.yaml", "client.yaml", "orders.yaml"];

interface ShopPorts {
  readonly plain: number;
  readonly secure: number;
}

export class ShopInstance implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  /** Of HTTPS. */
  readonly securePort: number;
  /** `tulle up` as it runs now. */
  up!: StartedProcess;
  /** What is within. */
  readonly reach: ShopReach;
  /** Under the state folder, where `stateDiskBytes` asks for it. */
  disk: TinyDisk | undefined;
  readonly #parent: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #user: OrdinaryUser | undefined;

  private constructor(
    parent: string,
    folder: string,
    ports: ShopPorts,
    env: Readonly<Record<string, string | undefined>>,
    { user, variant }: ShopOptions,
  ) {
    this.#user = user;
    this.reach = new ShopReach(this, variant?.mode ?? "loopback");
    this.#parent = parent;
    this.folder = folder;
    this.port = ports.plain;
    this.securePort = ports.secure;
    this.#env = env;
  }

  /** Starts a shop and waits for nothing. */
  static async begin(options: ShopOptions = {}): Promise<ShopInstance> {
    const parent = await mkdtemp(path.join(tmpdir(), "tulle-e2e-"));
    // The shop's programs use the installed libraries.
    await symlink(path.join(root, "node_modules"), path.join(parent, "node_modules"));
    const folder = path.join(parent, options.folderName ?? "shop");
    await cp(path.join(root, "samples", "shop"), folder, {
      recursive: true,
      filter: (source) => path.basename(source) !== ".tulle",
    });
    const [plain, secure] = await freePorts(2);
    const ports: ShopPorts = { plain: plain!, secure: secure! };
    if (options.isWhole) await moveManifests(folder, ports);
    const without = [...(options.isWhole ? [] : restOfTheShop), ...(options.without ?? [])];
    for (const name of without) await rm(path.join(folder, name));
    await mkdir(path.join(parent, "state"));
    await options.prepare?.(folder);
    const env = { XDG_STATE_HOME: path.join(parent, "state"), TULLE_DIR: undefined, ...options.env };
    if (options.user !== undefined) options.user.own(parent);
    const shop = new ShopInstance(parent, folder, ports, env, options);
    if (options.stateDiskBytes !== undefined) {
      const state = path.join(folder, ".tulle");
      await mkdir(state, { mode: 0o700 });
      shop.disk = await mountTinyDisk(state, options.stateDiskBytes);
    }
    const variant = options.variant === undefined ? [] : variantArgs(options.variant);
    shop.up = await shop.#startUp([...variant, ...(options.args ?? [])]);
    return shop;
  }

  #startUp(args: readonly string[] = []): Promise<StartedProcess> {
    const ports = `${this.port}:8080,${this.securePort}:8443`;
    const command = [commandEntry, "up", this.folder, "--publish", ports, ...args];
    return startProcess(process.execPath, command, {
      name: "tulle up",
      env: this.#env,
      cwd: this.#parent,
      user: this.#user,
    });
  }

  /** Ends the shop by Ctrl-C and starts it again in the same folder. */
  async restart(...args: readonly string[]): Promise<void> {
    await this.up.stop({ signal: "SIGINT" });
    this.up = await this.#startUp(args);
    await this.up.waitForOutput(/^Ready$/m);
  }

  /** Starts a shop and waits for Ready, of all pods or of those that can run here. */
  static async start(options: ShopOptions = {}): Promise<ShopInstance> {
    const shop = await ShopInstance.begin(options);
    try {
      await shop.up.waitForOutput(/^Ready\b/m);
      return shop;
    } catch (error) {
      await using failed = shop;
      throw new Error(`the shop did not become ready\n${await failed.proxyLogs()}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reach[Symbol.dispose]();
    await this.up.stop({ signal: "SIGINT" });
    await this.disk?.[Symbol.asyncDispose]();
    await rm(this.#parent, { recursive: true, force: true });
  }

  /** What a person would give to `curl --cacert`. */
  get rootFile(): string {
    return path.join(this.#parent, "state", "tulle", "development-ca", "root-cert.pem");
  }

  /** A request through the published port. */
  get(target: string, headers: Readonly<Record<string, string>> = {}, agent?: Agent): Promise<Answer> {
    return httpRequest(
      `http://127.0.0.1:${this.port}${target}`,
      agent === undefined ? { headers } : { headers, agent },
    );
  }

  /** Another command of this shop's, which runs. */
  command(...args: readonly string[]): Promise<StartedProcess> {
    return startProcess(process.execPath, [commandEntry, ...args], {
      name: `tulle ${args.join(" ")}`,
      env: { ...this.#env, TULLE_DIR: this.folder },
      cwd: this.folder,
      user: this.#user,
    });
  }

  async tulle(...args: readonly string[]): Promise<CommandResult> {
    const command = await this.command(...args);
    const { code } = await command.exited;
    await waitFor(() => command.child.stdout?.closed === true && command.child.stderr?.closed === true, {
      what: "the command's output",
    });
    return { code, stdout: command.stdout(), stderr: command.stderr() };
  }

  /** As `tulle`, and throws unless it ends with 0. */
  async mustTulle(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.tulle(...args);
    if (code !== 0) throw new Error(`tulle ${args.join(" ")} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }

  /** What `tulle pods -o json` prints, without a process for each look: many look again and again. */
  async pods(): Promise<readonly Pod[]> {
    return (await this.api().list("Pod")).items.map(podRow);
  }

  /** The only pod whose name begins so. */
  async pod(prefix: string): Promise<Pod> {
    const found = (await this.pods()).filter(({ name }) => name.startsWith(prefix));
    if (found.length !== 1) throw new Error(`${found.length} pods begin with ${prefix}`);
    return found[0]!;
  }

  /** Applies one of the sample's rules and waits until every proxy has it. */
  async applyRule(name: string): Promise<void> {
    await this.mustTulle("apply", "-f", path.join(this.folder, "rules", `${name}.yaml`));
    await this.waitForSync();
  }

  syncRows(): Promise<readonly SyncRow[]> {
    return this.read("/debug/syncz");
  }

  /** A JSON page of the control plane's HTTP API. */
  async read<T>(target: string): Promise<T> {
    const response = await this.api().open("GET", target);
    assert.equal(response.statusCode, 200, target);
    return (await json(response)) as T;
  }

  /** The control plane, as its owner asks it. */
  api(): ApiClient {
    return new ApiClient({ endpoint: { socketPath: apiSocketPath(path.join(this.folder, ".tulle"), this.#env) } });
  }

  /** Waits until nothing waits to be sent and no proxy is behind. */
  async waitForSync(): Promise<void> {
    await waitFor(
      async () => {
        const { pending } = await this.read<{ pending: boolean }>("/debug/pending");
        const states = (await this.syncRows()).flatMap(({ types }) => Object.values(types).map(({ state }) => state));
        return !pending && states.length > 0 && states.every((state) => state === "SYNCED" || state === "NOT SENT");
      },
      { what: "every proxy to acknowledge", intervalMs: 40 },
    );
  }

  /** `istio_requests_total` of every proxy, by pod. */
  async requestCounts(): Promise<readonly RequestCount[]> {
    const pods = await this.pods();
    const texts = await Promise.all(pods.map((pod) => this.reach.admin(pod, "/stats/prometheus")));
    return pods.flatMap(({ name }, index) => parseCounts(name, texts[index]!));
  }

  async proxyLogs(): Promise<string> {
    const folder = path.join(this.folder, ".tulle", "logs");
    const parts: string[] = [this.up.output()];
    for (const entryName of await readdir(folder, { recursive: true }).catch(() => [])) {
      if (!entryName.endsWith(".log")) continue;
      const text = await readFile(path.join(folder, entryName), "utf8");
      parts.push(`--- ${entryName}\n${text.slice(-2000)}`);
    }
    return parts.join("\n");
  }

  /**
   * Process ids of everything that this instance started, by what they run: a pod's name with app or proxy, or
   * control-plane.
   */
  async processes(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const [environment, commandLine] = await Promise.all(
        ["environ", "cmdline"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "")),
      );
      const args = commandLine!.split("\0");
      // The guards of the processes show the same arguments.
      if (args[0] === "/bin/sh") continue;
      if (args.includes("control-plane") && args.includes(path.join(this.folder, ".tulle"))) {
        found.set("control-plane", Number(pid));
      }
      const variables = Object.fromEntries(
        environment!.split("\0").map((line) => line.split(/=(.*)/s) as [string, string]),
      );
      const place = await readlink(`/proc/${pid}/cwd`).catch(() => "");
      const isOurs = [variables["TULLE_STATE_DIR"] ?? "", `${place}/`].some((value) =>
        value.startsWith(`${this.folder}/`),
      );
      if (!isOurs || variables["POD_NAME"] === undefined) continue;
      // An Envoy has the variables of its agent, which is the proxy to whoever starts and ends it.
      if (variables["TULLE_STATE_DIR"] !== undefined && !args.includes("agent")) continue;
      found.set(
        `${variables["POD_NAME"]} ${variables["TULLE_STATE_DIR"] === undefined ? "app" : "proxy"}`,
        Number(pid),
      );
    }
    return found;
  }
}

/** Leads addresses that the manifests name to the copy's own ports and to the repository. */
async function moveManifests(folder: string, ports: ShopPorts): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    if (!name.endsWith(".yaml")) continue;
    const file = path.join(folder, name);
    const text = await readFile(file, "utf8");
    const moved = text
      .replaceAll("localhost:8080", `localhost:${ports.plain}`)
      .replaceAll("localhost:8443", `localhost:${ports.secure}`)
      .replaceAll("../../packages", `${root}/packages`);
    await writeFile(file, moved);
  }
}

export interface SyncRow {
  readonly proxy: string;
  readonly types: Readonly<
    Record<
      string,
      { readonly state: string; readonly errors: readonly { readonly resource: string; readonly message: string }[] }
    >
  >;
}

export interface RequestCount {
  readonly pod: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function parseCounts(pod: string, text: string): RequestCount[] {
  return text.split("\n").flatMap((line) => {
    const match = /^istio_requests_total\{(.*)\} (\d+)$/.exec(line);
    if (match === null) return [];
    const labels = Object.fromEntries(
      [...match[1]!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
    );
    return [{ pod, labels, value: Number(match[2]) }];
  });
}

/** Verified as a browser that trusts the authority would. */
export async function getSecurely(shop: ShopInstance, target: string): Promise<Answer> {
  const ca = await readFile(shop.rootFile);
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const outgoing = secureRequest(`https://localhost:${shop.securePort}${target}`, {
    ca,
    agent: false,
    timeout: 10_000,
  });
  outgoing.once("response", (response) => {
    let body = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    response.once("error", reject);
    response.once("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
  });
  outgoing.once("timeout", () => outgoing.destroy(new Error("no answer in time")));
  outgoing.once("error", reject);
  outgoing.end();
  return promise;
}

/** Runs `count` calls, `parallel` at a time, in order of their index. */
export async function inParallel<T>(
  count: number,
  parallel: number,
  call: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) results[index] = await call(index);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}
