// A machine's systemd, in namespaces of the test's own: it is process 1 there, and knows the units alone that the test
// gives it. Its control group is the test's, and goes with it.
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { debianTool } from "./debian-tool.ts";
import type { NetworkNamespace } from "./network-namespace.ts";
import { type StartedProcess, startProcess, waitFor } from "./processes.ts";
import { type CommandResult, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

const controlGroups = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
/** What is there before any program of the machine, without what a real one would mount and set. */
const targets = ["basic", "sysinit", "multi-user", "network-online", "network", "sockets", "timers", "paths", "slices"];
const endTargets = ["shutdown", "umount", "final", "local-fs", "swap", "reboot", "exit", "poweroff", "halt"];

/** `$1` is the test's folder. No program of the borrowed system is started, and nothing of it is written. */
const script = `
  set -e
  mount -t tmpfs tmpfs /run
  mount --bind "$1/targets" /lib/systemd/system
  mount --bind "$1/etc" /etc/systemd
  for folder in /etc/init.d /lib/systemd/system-generators; do mount -t tmpfs tmpfs $folder; done
  mount --bind "$1/console" /dev/console
  umount -l /sys/fs/cgroup
  mount -t cgroup2 none /sys/fs/cgroup
  export container=test
  exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=console
`;

export class SystemdMachine implements AsyncDisposable {
  readonly #folder: string;
  readonly #group: string;
  readonly #network: NetworkNamespace;
  #started: StartedProcess | undefined;
  #init = "";

  private constructor(folder: string, group: string, network: NetworkNamespace) {
    [this.#folder, this.#group, this.#network] = [folder, group, network];
  }

  /** @throws {ToolUnavailable} */
  static async start(folder: string, network: NetworkNamespace): Promise<SystemdMachine> {
    await debianTool("systemd");
    const groups = controlGroups.find((each) => existsSync(path.join(each, "cgroup.procs")));
    if (groups === undefined) throw new ToolUnavailable("systemd as process 1", "there are no control groups (v2)");
    for (const name of ["targets", "etc/system"]) await mkdir(path.join(folder, name), { recursive: true });
    for (const name of [...targets, ...endTargets]) {
      const unit = `${name}.target`;
      await copyFile(path.join("/lib/systemd/system", unit), path.join(folder, "targets", unit));
    }
    await writeFile(path.join(folder, "console"), "");
    const manager = new SystemdMachine(folder, await mkdtemp(path.join(groups, "tulle-test-")), network);
    await manager.begin();
    return manager;
  }

  /** As a machine that is switched on. */
  async begin(): Promise<void> {
    const spaces = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--cgroup", "--uts", "--ipc"];
    const inGroup = 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"';
    const words = ["unshare", ...spaces, "bash", "-c", script, "systemd", this.#folder];
    const all = [...this.#network.enter, "bash", "-c", inGroup, "bash", this.#group, ...words];
    const started = await startProcess(all[0]!, all.slice(1), { name: "systemd" });
    this.#started = started;
    const child = async (): Promise<string> => {
      const text = await readFile(`/proc/${started.pid}/task/${started.pid}/children`, "utf8").catch(() => "");
      return text.trim();
    };
    await waitFor(async () => (this.#init = await child()) !== "", {
      what: "process 1",
      details: () => started.output(),
    });
    const isUp = async (): Promise<boolean> =>
      (await this.run("systemctl", "is-active", "multi-user.target")).code === 0;
    await waitFor(isUp, { what: "systemd", details: () => started.output() });
  }

  /** As one that loses power: nothing of it says a word. */
  async losePower(): Promise<void> {
    this.#started!.kill("SIGKILL");
    await this.#started!.exited;
  }

  run(command: string, ...args: readonly string[]): Promise<CommandResult> {
    const enter = ["--target", this.#init, "--pid", "--mount", "--net", "--cgroup", "--uts", "--ipc", "--"];
    return runCommand("nsenter", [...enter, command, ...args]);
  }

  /** A process of a unit by its id on the machine. */
  async mainProcess(unit: string): Promise<string> {
    return (await this.run("systemctl", "show", "--property=MainPID", "--value", unit)).stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.losePower();
    const isGone = async (): Promise<boolean> =>
      (await readFile(path.join(this.#group, "cgroup.events"), "utf8")).includes("populated 0");
    await waitFor(isGone, { what: "its programs to end" });
    await removeGroup(this.#group);
  }
}

async function removeGroup(group: string): Promise<void> {
  for (const entry of await readdir(group, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeGroup(path.join(group, entry.name));
  }
  await rmdir(group);
}
