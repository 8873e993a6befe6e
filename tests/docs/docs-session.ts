// Runs the shell blocks of one session as a reader would: in order, in a folder that looks like a fresh clone, with the
// ports that the page names exchanged for free ones so that nothing on the machine is in the way.
import { cp, glob, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort, startProcess, type StartedProcess } from "../tools/processes.ts";
import type { ShellBlock } from "./shell-blocks.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** Enough for the slowest commands of a page on two busy cores: on a cluster, an installation and its pods. */
const blockTimeoutMs = process.env["KUBECONFIG"] === undefined ? 120_000 : 600_000;

/** A command that serves until Ctrl-C: a reader leaves it in its terminal and goes on in another one. */
interface ServerCommand {
  readonly pattern: RegExp;
  /** The same command on other ports. */
  readonly onPorts: (command: string, port: (shown: number) => string) => string;
  readonly ready: RegExp;
}

/**
 * Blocks of a session share variables, as commands in one terminal do. Read-only ones of bash itself cannot be set
 * again.
 */
const prologue = [
  "[ -f .state/variables ] && source .state/variables 2> /dev/null",
  "trap 'declare -p > .state/variables' EXIT",
  "set -euo pipefail",
].join("\n");

/** Not pods and their endpoints, which come and go by themselves. */
const configuredKinds = [
  "namespaces",
  "serviceaccounts",
  "services",
  "deployments",
  "gateways",
  "virtualservices",
  "destinationrules",
  "authorizationpolicies",
  "requestauthentications",
  "peerauthentications",
  "secrets",
  "browserlogins",
  "rollouts",
  "configmaps",
];

const publishElsewhere = (port: (shown: number) => string) => `--publish ${port(8080)}:8080,${port(8443)}:8443`;

const serverCommands: readonly ServerCommand[] = [
  { pattern: /^npm start$/, onPorts: (command, port) => `${command} -- ${publishElsewhere(port)}`, ready: /^Ready\b/m },
  {
    pattern: /^\.\/tulle up\b/,
    onPorts: (command, port) => `${command} ${publishElsewhere(port)}`,
    ready: /^Ready\b/m,
  },
  {
    pattern: /^npm run authorization-server\b/,
    onPorts: (command, port) => `${command}${command.includes(" -- ") ? "" : " --"} --port ${port(9400)}`,
    ready: /^Ready\b/m,
  },
  {
    pattern: /^kubectl port-forward\b.* 8080:80$/,
    onPorts: (command, port) => command.replace("8080:80", `${port(8080)}:80`),
    ready: /^Forwarding from/m,
  },
];

export class DocsSession implements AsyncDisposable {
  readonly #folder: string;
  readonly #ports = new Map<number, string>();
  readonly #servers = new Map<string, StartedProcess>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<DocsSession> {
    const folder = await mkdtemp(path.join(tmpdir(), "tulle-docs-"));
    // The samples hold state while they run and are a copy; the rest is read only and linked.
    for (const name of await readdir(root)) {
      if (name === "samples")
        await cp(path.join(root, name), path.join(folder, name), { recursive: true, filter: isNoState });
      else if (!name.startsWith(".")) await symlink(path.join(root, name), path.join(folder, name));
    }
    await mkdir(path.join(folder, ".state"));
    return new DocsSession(folder);
  }

  /** Runs one block; rejects with the page's line, the output and the reason. */
  async run(block: ShellBlock): Promise<void> {
    const { script, command, server } = partsOf(block);
    await this.#exchangePorts(block.commands);
    // A reader who starts it begins in a new terminal.
    if (server !== undefined) await rm(path.join(this.#folder, ".state", "variables"), { force: true });
    const output = await this.#runScript(placeOf(block), script);
    const served = server === undefined ? "" : await this.#startServer(server, command);
    const prints = block.fate.kind === "run" ? block.fate.prints : [];
    for (const text of prints.map((shown) => this.#onOurPorts(shown))) {
      if (!(output + served).includes(text))
        throw new Error(`${placeOf(block)} does not print "${text}" but:\n${output}${served}`);
    }
  }

  /** What is configured: all that a person may have applied, as the mesh holds it; a line each. */
  async resources(): Promise<readonly string[]> {
    const kinds = configuredKinds.join(",");
    const printed = await this.#runScript("what is configured", `./tulle get ${kinds} -A -o json 2> .state/notes`);
    // What was replaced and came back has a new version, and is the same.
    const plain = JSON.parse(printed, (key, value: unknown) => (key === "resourceVersion" ? undefined : value));
    return (plain as { readonly items: readonly unknown[] }).items.map((item) => JSON.stringify(item));
  }

  /** Ends the servers as Ctrl-C does, the last one first; one that ends badly fails the page. */
  async [Symbol.asyncDispose](): Promise<void> {
    const bad: string[] = [];
    for (const server of [...this.#servers.values()].toReversed()) {
      const exit = await server.stop({ signal: "SIGINT" });
      // npm ends by the signal itself, once its script has ended.
      const wellEnded = exit.code === 0 || exit.code === 130 || exit.signal === "SIGINT";
      if (!wellEnded) bad.push(`${server.name} ended with ${exit.code ?? exit.signal}:\n${server.output()}`);
    }
    await rm(this.#folder, { recursive: true, force: true });
    if (bad.length > 0) throw new Error(bad.join("\n"));
  }

  async #runScript(name: string, script: string): Promise<string> {
    if (script.trim() === "") return "";
    await using shell = await startProcess(
      "bash",
      ["-c", `${prologue}\n${this.#onOurPorts(script)}`],
      this.#start(name),
    );
    const timer = setTimeout(() => shell.kill("SIGKILL"), blockTimeoutMs);
    const exit = await shell.exited;
    clearTimeout(timer);
    if (exit.code !== 0)
      throw new Error(`${name} ended with ${exit.code ?? exit.signal}:\n${script}\n---\n${shell.output()}`);
    return shell.output();
  }

  async #startServer(server: ServerCommand, command: string): Promise<string> {
    const running = this.#servers.get(command);
    if (running !== undefined) return running.output();
    for (const shown of [8080, 8443, 9400]) await this.#exchangePort(shown);
    await this.#exchangePortsOfSamples();
    const elsewhere = server.onPorts(command, (shown) => this.#ports.get(shown)!);
    const started = await startProcess("bash", ["-c", `exec ${elsewhere}`], this.#start(command));
    this.#servers.set(command, started);
    await started.waitForOutput(server.ready, { timeoutMs: blockTimeoutMs });
    return started.output();
  }

  #start(name: string) {
    return {
      name,
      cwd: this.#folder,
      group: true,
      env: {
        ...npmFreeEnvironment(),
        // `tulle` is the clone's own.
        PATH: [path.join(this.#folder, "node_modules", ".bin"), this.#folder, process.env["PATH"]].join(path.delimiter),
        // The registry of running instances is this session's own.
        XDG_STATE_HOME: path.join(this.#folder, ".state"),
        TULLE_DIR: undefined,
      },
    };
  }

  async #exchangePorts(text: string): Promise<void> {
    for (const match of text.matchAll(/\b(?:localhost|127\.0\.0\.1):(\d+)/g))
      await this.#exchangePort(Number(match[1]));
  }

  /** What a page applies stands to the samples as it does for a reader: what is the same there is the same here. */
  async #exchangePortsOfSamples(): Promise<void> {
    for await (const name of glob("samples/**/*.yaml", { cwd: this.#folder })) {
      const file = path.join(this.#folder, name);
      await writeFile(file, this.#onOurPorts(await readFile(file, "utf8")));
    }
  }

  async #exchangePort(shown: number): Promise<void> {
    if (!this.#ports.has(shown)) this.#ports.set(shown, String(await freePort()));
  }

  #onOurPorts(text: string): string {
    return text.replaceAll(/\b(localhost|127\.0\.0\.1):(\d+)/g, (all, host: string, port: string) => {
      const ours = this.#ports.get(Number(port));
      return ours === undefined ? all : `${host}:${ours}`;
    });
  }
}

/** Whether a block ends with a command that serves until Ctrl-C. */
export function startsServer(block: ShellBlock): boolean {
  return partsOf(block).server !== undefined;
}

/** A block's last command apart where it is one that serves; its script is then what stands before it. */
function partsOf(block: ShellBlock): {
  readonly script: string;
  readonly command: string;
  readonly server: ServerCommand | undefined;
} {
  const lines = block.commands.split("\n");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  const command = lines[last]?.trim() ?? "";
  const server = serverCommands.find(({ pattern }) => pattern.test(command));
  return { script: (server === undefined ? lines : lines.slice(0, last)).join("\n"), command, server };
}

/** What npm tells its scripts is about this test run, not about the commands of the page. */
function npmFreeEnvironment(): Record<string, undefined> {
  const names = Object.keys(process.env).filter((name) => /^npm_|^NODE_TEST_CONTEXT$/.test(name));
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

function isNoState(source: string): boolean {
  return path.basename(source) !== ".tulle";
}

function placeOf(block: ShellBlock): string {
  return `${block.page}:${block.line}`;
}
