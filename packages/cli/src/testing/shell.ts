// A shell for tests of commands: what a person types is run against a real control plane in this process.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { runManifestControlPlane } from "@tulle/control-plane";
import { Logging } from "@tulle/telemetry";
import type { Instance } from "@tulle/local/instance";
import { stringify } from "yaml";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";
import { commands } from "../commands.ts";
import { runCli } from "../run-cli.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";

interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A shell with one running instance (or none): what is typed is run, what is printed comes back. */
export class Shell {
  readonly dir: string;
  readonly instance: Instance | undefined;

  constructor(dir: string, instance: Instance | undefined) {
    this.dir = dir;
    this.instance = instance;
  }

  async run(line: string, stdin = ""): Promise<Ran> {
    let stdout = "";
    let stderr = "";
    const context: CommandContext = {
      env: {},
      cwd: this.dir,
      stdin: Readable.from([Buffer.from(stdin)]),
      isTerminal: false,
      columns: undefined,
      stdout: (text) => void (stdout += text),
      stderr: (text) => void (stderr += text),
      eraseLines: () => undefined,
      instance: async () => {
        if (this.instance === undefined) throw new CommandFailure("no instance", { exitCode: exitCodes.noInstance });
        return this.instance;
      },
      printData: async (data, format, text) => {
        stdout += format === undefined ? text() : format === "json" ? JSON.stringify(data) : stringify(data);
      },
    };
    const args = line.split(" ").map((arg) => arg.replace(/^@/, `${this.dir}/`));
    const exitCode = await runCli(args, context, commands);
    return { exitCode, stdout: this.#mask(stdout), stderr: this.#mask(stderr) };
  }

  #mask(text: string): string {
    return text.replaceAll(`${this.dir}/`, "@");
  }
}

/** `watched` is a folder among `files` that the control plane itself reads. */
export async function startShell(
  t: TestContext,
  files: Readonly<Record<string, string>> = {},
  watched?: string,
): Promise<Shell> {
  const dir = temporaryFolder("tulle-cli-");
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(dir, name)), { recursive: true });
    await writeFile(path.join(dir, name), text);
  }
  const stateDir = path.join(dir, ".tulle");
  const plane = await runManifestControlPlane({
    stateDirectory: stateDir,
    ...(watched === undefined ? {} : { directory: path.join(dir, watched) }),
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    logging: new Logging({ level: "error" }),
  });
  t.after(() => plane.close());
  const { host, port } = plane.httpAddress;
  return new Shell(dir, {
    dir,
    stateDir,
    pid: process.pid,
    pidStartTime: "",
    apiUrl: `http://${host}:${port}`,
    xdsAddress: `${plane.xdsAddress!.host}:${plane.xdsAddress!.port}`,
    publishedPorts: [],
    ready: true,
    startedAt: "",
    developmentRootFile: "/state/tulle/development-ca/root-cert.pem",
  });
}
