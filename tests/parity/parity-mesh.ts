// The running parity mesh: `tulle up` on `mesh/`, its pods, and a call made to one of them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { envoyPath } from "../tools/envoy-path.ts";
import { type StartedProcess, startProcess } from "../tools/processes.ts";
import { type AccessLogLine, parseAccessLogLine } from "./access-log-line.ts";
import type { Call, Role } from "./call.ts";
import { exchangeStreams, mapTexts } from "../tools/http2-client.ts";
import { type RawAnswer, exchangeBytes, parseAnswers } from "../tools/raw-client.ts";

export const proxies = ["tulle", "envoy"] as const;
export type Proxy = (typeof proxies)[number];

export interface Pod {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  /** The application itself, past its proxy; null for a gateway. */
  readonly app: { readonly address: string } | null;
}

/** What a back end says that it received. */
export interface Echo {
  readonly version: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly trailers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Outcome {
  /** The client's `ip:port`, which finds its access-log lines again, whatever became of its headers. */
  readonly client: string;
  readonly answers: readonly RawAnswer[];
  /** For each answer, where a back end made it. */
  readonly echoes: readonly (Echo | undefined)[];
}

const root = path.resolve(import.meta.dirname, "../..");
const cli = path.join(root, "packages/cli/src/main.ts");
const adminPort = 15_000;
const ports: Readonly<Record<Role, number>> = { gateway: 8080, outbound: 15_007, inbound: 3000 };

export class ParityMesh {
  readonly #work: string;
  readonly #up: StartedProcess;
  #pods: readonly Pod[] = [];

  private constructor(work: string, up: StartedProcess) {
    this.#work = work;
    this.#up = up;
  }

  /** `further`: manifests beside those of `mesh/`, by file name. */
  static async start(further: Readonly<Record<string, string>> = {}): Promise<ParityMesh> {
    const work = await mkdtemp(path.join(tmpdir(), "tulle-parity-"));
    const folder = path.join(work, "mesh");
    await cp(path.join(import.meta.dirname, "mesh"), folder, { recursive: true });
    await cp(path.join(import.meta.dirname, "backend.ts"), path.join(work, "backend.ts"));
    for (const [name, text] of Object.entries(further)) await writeFile(path.join(folder, name), text);
    const up = await startProcess(process.execPath, [cli, "up", folder, "--restart", "never"], {
      name: "tulle up",
      group: true,
      env: { TULLE_ENVOY: await envoyPath(), XDG_STATE_HOME: path.join(work, "state") },
    });
    const mesh = new ParityMesh(work, up);
    await up.waitForOutput(/^Ready/m);
    mesh.#pods = JSON.parse(await mesh.tulle("pods", "-o", "json")) as Pod[];
    return mesh;
  }

  /** @throws with its log where a process of the mesh has ended by itself: rows that fail after it say nothing. */
  async stop(): Promise<void> {
    const ends = [...this.#up.output().matchAll(/^(\S+) (\S+) ended \(.*$/gm)];
    const logs = await Promise.all(ends.map(([, pod, program]) => this.#logOf(pod!, program!)));
    await this.#up.stop();
    await rm(this.#work, { recursive: true, force: true });
    assert.deepEqual(
      ends.map(([said]) => said),
      [],
      logs.join("\n"),
    );
  }

  async #logOf(pod: string, program: string): Promise<string> {
    return (await this.#wholeLogOf(pod, program)).slice(-10_000);
  }

  #wholeLogOf(pod: string, program: string): Promise<string> {
    return readFile(path.join(this.#work, "mesh", ".tulle", "logs", pod, `${program}.log`), "utf8");
  }

  async tulle(...args: string[]): Promise<string> {
    const command = await startProcess(process.execPath, [cli, ...args, "--dir", path.join(this.#work, "mesh")], {
      name: `tulle ${args[0]}`,
    });
    const exit = await command.exited;
    assert.equal(exit.code, 0, command.output());
    return command.stdout();
  }

  pod(app: string): Pod {
    const pod = this.#pods.find(({ labels }) => (labels["version"] ?? labels["app"]) === app);
    assert.ok(pod, `no pod ${app}`);
    return pod;
  }

  /** A file of a pod's agent. */
  stateFile(pod: Pod, name: string): string {
    return path.join(this.#work, "mesh", ".tulle", "pods", pod.name, name);
  }

  podOf(role: Role, proxy: Proxy): Pod {
    return this.pod(role === "gateway" ? `gateway-${proxy}` : `side-${proxy}`);
  }

  /** A page of the proxy's own. */
  async admin(role: Role, proxy: Proxy, page: string): Promise<string> {
    const response = await fetch(`http://${this.podOf(role, proxy).address}:${adminPort}${page}`);
    return response.text();
  }

  /**
   * `from` is the client's address. In a call `%KEY%` becomes a name for it on this proxy, `%FROM%` the client's
   * address, `%ECHO_V1%` and `%ECHO_V2%` addresses of back ends.
   * @throws when there is no end of the answer, or it cannot be read
   */
  async makeCall(call: Call, proxy: Proxy, from: string): Promise<Outcome> {
    const substitute = (text: string): string =>
      text
        .replaceAll("%FROM%", from)
        .replaceAll("%KEY%", `key-${proxy}-${from}`)
        .replaceAll("%ECHO_V1%", `${this.pod("v1").address}:3000`)
        .replaceAll("%ECHO_V2%", `${this.pod("v2").address}:3000`);
    const place = { host: this.podOf(call.role, proxy).address, port: call.port ?? ports[call.role] };
    if (call.version === "HTTP/2") {
      const socket = connect({ ...place, localAddress: from });
      await once(socket, "connect");
      const client = `${socket.localAddress}:${socket.localPort}`;
      const requests = call.requests.map((request) => mapTexts(request, substitute));
      const answers = await exchangeStreams(socket, requests);
      return { client, answers, echoes: answers.map(echoOf) };
    }
    const { client, received } = await exchangeBytes({
      ...place,
      from,
      bytes: substitute(call.bytes),
      afterHead: call.afterHead === undefined ? undefined : substitute(call.afterHead),
    });
    const answers = parseAnswers(received, call.methods);
    return { client, answers, echoes: answers.map(echoOf) };
  }

  /** So far; what `tulle logs` prints, without a process for each look. */
  proxyLog(role: Role, proxy: Proxy): Promise<string> {
    return this.#wholeLogOf(this.podOf(role, proxy).name, "proxy");
  }

  /** The lines of a proxy's access log so far, by the client's address. */
  async accessLog(role: Role, proxy: Proxy): Promise<Map<string, AccessLogLine[]>> {
    const lines = (await this.proxyLog(role, proxy)).split("\n").flatMap((line) => parseAccessLogLine(line) ?? []);
    return Map.groupBy(lines, ({ downstreamRemoteAddress }) => downstreamRemoteAddress);
  }
}

function echoOf(answer: RawAnswer): Echo | undefined {
  if (answer.body === "" || answer.truncated) return undefined;
  const isEcho = answer.headers.some(([name, value]) => name === "content-type" && value === "application/json");
  return isEcho ? (JSON.parse(answer.body) as Echo) : undefined;
}
