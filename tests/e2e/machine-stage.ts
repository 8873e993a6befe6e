// A control plane, or all of `tulle up`, and machines that are no pods, each in a network of its own with a way to the
// others: what a machine has of the mesh is what `tulle join` brings.
import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import type { MachinesResponse } from "@tulle/config/api";
import { NetworkNamespace } from "../tools/network-namespace.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import type { CommandResult } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

export const joinPort = 15_017;
const root = path.resolve(import.meta.dirname, "../..");
const main = path.join(root, "packages/cli/src/main.ts");

/** Groups of the namespace `shop`, each with a host of its own in the mesh, whose machines are in that network. */
const groupManifests = (network = "") =>
  ["ledger", "payroll"]
    .map(
      (name) => `
apiVersion: networking.istio.io/v1
kind: WorkloadGroup
metadata: { name: ${name}, namespace: shop }
spec:
  metadata: { labels: { app: ${name} } }
  template: { serviceAccount: ${name}, network: "${network}" }
  probe: { periodSeconds: 1, failureThreshold: 1, httpGet: { port: 9080 } }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${name}, namespace: shop }
spec:
  hosts: [${name}.internal]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 9080 }]
  workloadSelector: { labels: { app: ${name} } }
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: ${name}, namespace: shop }
spec: { selector: { matchLabels: { app: ${name} } }, mtls: { mode: STRICT } }
`,
    )
    .join("---\n");

/** Tells who it is, and as whom its callers have come. */
const program = `
  require("node:http").createServer((request, response) => {
    response.end(JSON.stringify({ name: process.argv[1], xfcc: request.headers["x-forwarded-client-cert"] }));
  }).listen(9080, process.argv[2], () => console.log("listens"));
`;

/** The mesh's own address, which all machines know. */
export const meshAddress = "10.66.0.1";

export interface StageOptions {
  /** All of `tulle up --mode namespaces` in the place of a control plane, with these manifests beside the groups'. */
  readonly podManifests?: string;
  /** Words that stand for `tulle` on a machine. */
  readonly tulle?: readonly string[];
  /** Of the machines; the mesh's own when missing. */
  readonly network?: string;
  /** Of the control plane, or of `tulle up`. */
  readonly options?: readonly string[];
}

export class MachineStage implements AsyncDisposable {
  readonly folder = temporaryFolder("tulle-machines-");
  state = path.join(this.folder, "control-plane");
  readonly #open = new AsyncDisposableStack();
  readonly #options: StageOptions;
  readonly #mesh: NetworkNamespace;
  #controlPlane: StartedProcess | undefined;
  #machines = 0;

  private constructor(options: StageOptions, mesh: NetworkNamespace) {
    this.#options = options;
    this.#mesh = this.#open.use(mesh);
  }

  /** @throws {ToolUnavailable} for who is not root */
  static async open(options: StageOptions = {}): Promise<MachineStage> {
    await using open = new AsyncDisposableStack();
    const stage = open.use(new MachineStage(options, await NetworkNamespace.create()));
    await stage.#mesh.mustRun("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward");
    // Known before there is a machine.
    await stage.#mesh.connect(stage.#mesh, "outside", "outside-end");
    await stage.#mesh.mustRun("ip", "address", "add", `${meshAddress}/32`, "dev", "outside");
    await mkdir(stage.#manifests);
    await writeFile(path.join(stage.#manifests, "mesh.yaml"), groupManifests(options.network));
    if (options.podManifests === undefined) await stage.startControlPlane();
    else await stage.#startUp(options.podManifests);
    open.move();
    return stage;
  }

  get #manifests(): string {
    return path.join(this.folder, "manifests");
  }

  async #startUp(podManifests: string): Promise<void> {
    await writeFile(path.join(this.#manifests, "pods.yaml"), podManifests);
    await symlink(path.join(root, "node_modules"), path.join(this.folder, "node_modules"));
    this.state = path.join(this.#manifests, ".tulle");
    const up = [...this.#mesh.enter, process.execPath, main, "up", this.#manifests, "--mode", "namespaces"];
    const words = [...up, ...(this.#options.options ?? [])];
    const started = await startWords(words, "tulle up", this.#env);
    this.#open.defer(async () => void (await started.stop({ signal: "SIGINT" })));
    await started.waitForOutput(/^Ready\b/m, { timeoutMs: 120_000 });
  }

  /** A command of `tulle` beside the mesh. */
  async tulle(...args: readonly string[]): Promise<CommandResult> {
    return this.#mesh.run("env", ...pairs(this.#env), process.execPath, main, ...args);
  }

  get #env(): Readonly<Record<string, string>> {
    return { XDG_STATE_HOME: path.join(this.folder, "state-home"), TULLE_DIR: this.#manifests };
  }

  async startControlPlane(): Promise<void> {
    const manifestsFolder = this.#manifests;
    const words = [
      ...this.#mesh.enter,
      process.execPath,
      main,
      "control-plane",
      "--manifests",
      manifestsFolder,
      "--state",
      this.state,
      "--no-xds",
      "--join-address",
      `${meshAddress}:${joinPort}`,
      "--http",
      "127.0.0.1:15014",
      ...(this.#options.options ?? []),
    ];
    const started = await startWords(words, "the control plane");
    this.#controlPlane = started;
    this.#open.defer(async () => void (await started.stop()));
    await started.waitForOutput(/control plane serves/);
  }

  /** As a crash does. */
  async killControlPlane(): Promise<void> {
    process.kill(this.#controlPlane!.pid, "SIGKILL");
    await this.#controlPlane!.exited;
  }

  async token(group: string, ...args: readonly string[]): Promise<string> {
    return (await this.api("POST", "tokens", { group, namespace: "shop", lifetimeSeconds: 600, ...tokenFields(args) }))[
      "token"
    ] as string;
  }

  async api(method: string, where: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const socket = path.join(this.state, "control-plane.sock");
    const data = body === undefined ? [] : ["-d", JSON.stringify(body)];
    const url = `http://tulle/api/v1/machines${where === "" ? "" : `/${where}`}`;
    const text = await this.#mesh.mustRun("curl", "-sS", "-X", method, "--unix-socket", socket, ...data, url);
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  }

  async machines(): Promise<MachinesResponse> {
    return (await this.api("GET", "")) as unknown as MachinesResponse;
  }

  /** Names of the WorkloadEntries of all machines. */
  async waitForEntries(names: readonly string[]): Promise<void> {
    const found = async (): Promise<readonly string[]> => {
      const items = await this.#read("/api/v1/resources/WorkloadEntry?namespace=shop");
      return (items as { readonly items: readonly { readonly metadata: { readonly name: string } }[] }).items
        .map(({ metadata }) => metadata.name)
        .toSorted((a, b) => a.localeCompare(b, "en"));
    };
    await waitFor(async () => (await found()).join() === names.join(), { what: `the entries ${names.join(" and ")}` });
  }

  async #read(where: string): Promise<unknown> {
    const socket = path.join(this.state, "control-plane.sock");
    return JSON.parse(
      await this.#mesh.mustRun("curl", "-sS", "-m", "20", "--unix-socket", socket, `http://tulle${where}`),
    );
  }

  /** A command of `tulle` about a machine's own state. */
  tulleOn({ stateFolder }: Machine, command: string): [string, ...string[]] {
    return ["env", ...this.tulleWords, command, "--state", stateFolder];
  }

  /** What a program of a pod gets. */
  async callFrom(pod: string, url: string): Promise<string> {
    const { stdout } = await this.tulle("exec", pod, "--", "curl", "-sS", "-m", "20", "-w", " %{http_code}", url);
    return stdout;
  }

  /**
   * A machine with nothing of the mesh on it, and a program that listens at `appAddress`. `knows` is all that it has a
   * way to beyond its own network.
   */
  async machine(name: string, { appAddress = "127.0.0.1", knows = "default" } = {}): Promise<Machine> {
    this.#machines += 1;
    const net = this.#machines;
    const network = this.#open.use(await NetworkNamespace.create());
    await network.connect(this.#mesh, `vm${net}`);
    await this.#mesh.mustRun("ip", "address", "add", `10.66.${net}.1/24`, "dev", `vm${net}`);
    const machine = new Machine(name, net, network, this, knows);
    await machine.moveTo(2);
    await machine.startProgram(appAddress);
    return machine;
  }

  get tulleWords(): readonly string[] {
    return this.#options.tulle ?? [process.execPath, main];
  }

  defer(work: () => Promise<void>): void {
    this.#open.defer(work);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open.disposeAsync();
  }
}

function startWords(
  [command = "", ...args]: readonly string[],
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<StartedProcess> {
  return startProcess(command, args, { name, env });
}

function pairs(env: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

function tokenFields([address]: readonly string[]): object {
  return address === undefined ? {} : { addresses: [address] };
}

export class Machine {
  readonly name: string;
  readonly network: NetworkNamespace;
  readonly stateFolder: string;
  readonly #stage: MachineStage;
  readonly #net: number;
  readonly #knows: string;
  address = "";
  agent: StartedProcess | undefined;
  #program: StartedProcess | undefined;

  constructor(name: string, net: number, network: NetworkNamespace, stage: MachineStage, knows: string) {
    this.#knows = knows;
    this.name = name;
    this.network = network;
    this.#net = net;
    this.#stage = stage;
    this.stateFolder = path.join(stage.folder, `${name}-${net}`);
  }

  /** Gives it another address in its network, and takes the one before. */
  async moveTo(last: number): Promise<void> {
    const before = this.address;
    this.address = `10.66.${this.#net}.${last}`;
    const ip = (...args: readonly string[]) => this.network.mustRun("ip", ...args);
    if (before !== "") await ip("address", "flush", "dev", `vm${this.#net}`);
    await ip("address", "add", `${this.address}/24`, "dev", `vm${this.#net}`);
    await ip("route", "replace", this.#knows, "via", `10.66.${this.#net}.1`);
  }

  /** Of its agent. */
  get output(): string {
    return this.agent?.output() ?? "";
  }

  async startProgram(address: string): Promise<void> {
    const words = [...this.network.enter, process.execPath, "-e", program, this.name, address];
    const started = await startWords(words, `the program of ${this.name}`);
    this.#program = started;
    this.#stage.defer(async () => void (await started.stop()));
    await started.waitForOutput(/^listens$/m);
  }

  async stopProgram(): Promise<void> {
    await this.#program!.stop();
  }

  /** Runs `tulle join` until it is told to stop; the token goes by a variable. */
  async join(token: string | undefined, ...options: readonly string[]): Promise<StartedProcess> {
    const env: Record<string, string> = token === undefined ? {} : { TULLE_JOIN_TOKEN: token };
    return this.#start([...this.#stage.tulleWords, "join", "--state", this.stateFolder, ...options], env);
  }

  /** The same by other words that stand for `tulle`, with nothing else. */
  joinBy(tulle: readonly string[], ...options: readonly string[]): Promise<StartedProcess> {
    return this.#start([...tulle, "join", ...options], {});
  }

  async #start(command: readonly string[], env: Readonly<Record<string, string>>): Promise<StartedProcess> {
    const words = [...this.network.enter, ...command];
    const started = await startWords(words, `join of ${this.name}`, env);
    this.agent = started;
    this.#stage.defer(async () => void (await started.stop()));
    return started;
  }

  run(...command: readonly [string, ...string[]]): Promise<CommandResult> {
    return this.network.run(...command);
  }

  /** What a program of the machine gets from a host of the mesh through the proxy that it is told. */
  async call(url: string): Promise<string> {
    const proxy = ["-x", `http://${this.address}:15007`];
    const result = await this.run("curl", "-sS", "-m", "20", ...proxy, "-w", " %{http_code}", url);
    return result.code === 0 ? result.stdout : result.stderr;
  }

  async waitUntil(state: "healthy" | "unhealthy" | "disconnected"): Promise<void> {
    const isSo = async (): Promise<boolean> => (await this.status())?.state === state;
    await waitFor(isSo, { what: `${this.name} to be ${state}`, details: () => this.output });
  }

  async status() {
    const { machines } = await this.#stage.machines();
    return machines.find(({ address, group }) => address === this.address && group === this.name);
  }
}

/** The answer of a machine's program, and the identity that its caller has proved. */
export function answerOf(text: string): { readonly name: string; readonly caller: string } {
  const parsed = /^(?<json>\{.*\}) 200$/.exec(text);
  assert.ok(parsed?.groups, text);
  const { name, xfcc = "" } = JSON.parse(parsed.groups["json"]!) as { readonly name: string; readonly xfcc?: string };
  return { name, caller: /URI=([^;]+)/.exec(xfcc)?.[1] ?? "" };
}
