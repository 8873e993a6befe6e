// The smallest mesh that `tulle up` can run: one Deployment that answers with its pod's name, behind sidecars and a
// published port.
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ApiClient, type Deployment, type EndpointSlice, type Pod } from "@tulle/config";
import { freePort, startProcess, waitFor, type StartedProcess } from "../tools/processes.ts";
import { httpRequest } from "./shop-instance.ts";

const root = path.resolve(import.meta.dirname, "../..");
const entry = path.join(root, "packages", "cli", "src", "main.ts");

const program = `
import { createServer } from "node:http";
const server = createServer((request, response) => response.end(process.env.POD_NAME));
server.listen(Number(process.env.PORT), process.env.HOST);
process.on("SIGTERM", () => process.exit(0));
`;

const around = (hostPort: number): string => `
apiVersion: v1
kind: Namespace
metadata: { name: mine, labels: { tulle-injection: enabled } }
---
apiVersion: v1
kind: Service
metadata: { name: hello, namespace: mine, annotations: { local.tulle.io/publish: "${hostPort}:8000" } }
spec: { selector: { app: hello }, ports: [{ name: http, port: 80, targetPort: 8000 }] }
`;

export const helloDeployment: Deployment = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "hello", namespace: "mine" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "hello" } },
    template: {
      metadata: { labels: { app: "hello" }, annotations: { "local.tulle.io/command.hello": '["node", "hello.mjs"]' } },
      spec: { containers: [{ name: "hello", ports: [{ containerPort: 8000, protocol: "TCP" }] }] },
    },
  },
};

export interface SmallMeshOptions {
  readonly deployment?: Deployment;
  /** Program and first arguments that stand for `tulle`; the sources here when missing. */
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export class SmallMesh implements AsyncDisposable {
  readonly folder: string;
  readonly api: ApiClient;
  readonly #port: number;
  readonly #parent: string;
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string | undefined>>;
  #up: StartedProcess | undefined;

  private constructor(parent: string, port: number, { command, env }: SmallMeshOptions) {
    this.#parent = parent;
    this.#command = command ?? [process.execPath, entry];
    this.#env = { XDG_STATE_HOME: path.join(parent, "state"), TULLE_DIR: undefined, ...env };
    this.folder = path.join(parent, "mine");
    this.#port = port;
    this.api = new ApiClient({ endpoint: { socketPath: path.join(this.folder, ".tulle", "control-plane.sock") } });
  }

  /** Starts it with the Deployment in a file, and waits for Ready. */
  static async start(options: SmallMeshOptions = {}): Promise<SmallMesh> {
    const mesh = new SmallMesh(await mkdtemp(path.join(tmpdir(), "tulle-small-")), await freePort(), options);
    await mkdir(mesh.folder);
    await writeFile(path.join(mesh.folder, "around.yaml"), around(mesh.#port));
    await writeFile(path.join(mesh.folder, "hello.mjs"), program);
    await mesh.write(options.deployment ?? helloDeployment);
    mesh.#up = await mesh.#startTulle(["up", mesh.folder]);
    await mesh.#up.waitForOutput(/^Ready$/m);
    return mesh;
  }

  #startTulle(args: readonly string[]): Promise<StartedProcess> {
    const [executable = "", ...first] = this.#command;
    const name = `tulle ${args.join(" ")}`;
    return startProcess(executable, [...first, ...args], { name, env: this.#env, cwd: this.#parent });
  }

  get output(): string {
    return this.#up?.output() ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#up?.stop({ signal: "SIGINT" });
    await rm(this.#parent, { recursive: true, force: true });
  }

  /** Writes the manifest of the Deployment, or removes it. */
  async write(deployment: Deployment | undefined): Promise<void> {
    const file = path.join(this.folder, "hello.yaml");
    if (deployment === undefined) await rm(file, { force: true });
    else await writeFile(file, JSON.stringify(deployment));
  }

  async tulle(...args: readonly string[]): Promise<string> {
    const command = await this.#startTulle([...args, "--dir", this.folder]);
    const { code } = await command.exited;
    if (code !== 0) throw new Error(`tulle ${args.join(" ")} ended with ${code}:\n${command.output()}`);
    return command.stdout();
  }

  async podRows(): Promise<readonly Pod[]> {
    return (await this.api.list("Pod", "mine")).items;
  }

  async sliceRows(): Promise<readonly EndpointSlice[]> {
    return (await this.api.list("EndpointSlice", "mine")).items;
  }

  /** Process ids by the pod's name and what they are: its app, its proxy. */
  async processes(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
      const [environment = "", commandLine = ""] = await Promise.all(
        ["environ", "cmdline"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "")),
      );
      // The guards of the processes show the same arguments.
      if (!environment.includes(this.folder) || commandLine.startsWith("/bin/sh\0")) continue;
      const args = commandLine.split("\0");
      if (args.includes("control-plane")) found.set("control-plane", Number(pid));
      const pod = /(?:^|\0)POD_NAME=([^\0]*)/.exec(environment)?.[1];
      if (pod !== undefined) found.set(`${pod} ${args.includes("agent") ? "proxy" : "app"}`, Number(pid));
    }
    return found;
  }

  /** Waits for what a fresh start ends in: rows, processes and endpoints of as many pods, and an answer from each. */
  async waitUntilConverged(replicas: number): Promise<void> {
    let last = "";
    await waitFor(
      async () => {
        last = await this.#difference(replicas);
        return last === "";
      },
      {
        what: `${replicas} pods and nothing else`,
        intervalMs: 100,
        details: () => `${last}\n${this.output}`,
      },
    );
  }

  async #difference(replicas: number): Promise<string> {
    const rows = await this.podRows();
    const names = rows.map(({ metadata }) => metadata.name).sort();
    if (names.length !== replicas) return `the store has the pods ${names.join(", ")}`;
    const unready = rows.filter(
      ({ metadata, status }) =>
        metadata.deletionTimestamp !== undefined ||
        status?.conditions?.find(({ type }) => type === "Ready")?.status !== "True",
    );
    if (unready.length > 0) return `not ready: ${unready.map(({ metadata }) => metadata.name).join(", ")}`;
    // All of the machine's are looked at: last, and once the rest is as it should be.
    const [slices, processes] = await Promise.all([this.sliceRows(), this.processes()]);
    const wantedProcesses = ["control-plane", ...names.flatMap((name) => [`${name} app`, `${name} proxy`])].sort();
    const running = [...processes.keys()].sort();
    if (running.join() !== wantedProcesses.join()) return `what runs is ${running.join(", ")}`;
    const endpoints = slices.flatMap((slice) => slice.endpoints.map(({ targetRef }) => targetRef?.name ?? "")).sort();
    if (endpoints.join() !== names.join()) return `the endpoints are ${endpoints.join(", ")}`;
    if (replicas === 0) return "";
    // Whoever answers is one of them; a gateway's connections are spread by the kernel.
    const answer = await httpRequest(`http://127.0.0.1:${this.#port}/`, { timeoutMs: 2000 }).catch(String);
    if (typeof answer === "string") return answer;
    return answer.status === 200 && names.includes(answer.body) ? "" : `${answer.status} ${answer.body}`;
  }
}
