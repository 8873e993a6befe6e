// The first process of a pod. The pod's programs are in a PID namespace: they see each other and nobody else, and when
// its first process ends, the kernel ends all of them, daemons that have left their process group too. It ends with its
// supervisor, however that ends: it reads from a pipe of which nobody else has the other end.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import { enterProcesses } from "@tulle/capture";
import { viewScript } from "./pod-views.ts";
import type { SystemPrograms } from "./system-programs.ts";

const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

export class PodKeeper {
  /** Descriptors of the namespaces. */
  readonly processes: number;
  readonly files: number;
  readonly #child: ChildProcess;

  /** Resolves when nothing of the pod runs any more, whoever has ended it. */
  readonly ended: Promise<void>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.ended = new Promise((resolve) => child.once("exit", () => resolve()));
    this.processes = openSync(`/proc/${child.pid}/ns/pid_for_children`, "r");
    this.files = openSync(`/proc/${child.pid}/ns/mnt`, "r");
  }

  /** `steps` are those of the apps' view. Rejects in words for people; nothing stays then. */
  static async start({ unshare, mount }: SystemPrograms, steps: readonly string[]): Promise<PodKeeper> {
    const making = ["--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--"];
    // In a session of its own: who types Ctrl-C ends the supervisor, which ends pods in good order.
    const child = spawn(unshare, [...making, "/bin/sh", "-c", viewScript, "pod", mount, ...steps], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env,
    });
    await isMade(child);
    child.unref();
    (child.stdin as Socket).unref();
    return new PodKeeper(child);
  }

  /** Programs that the call spawns are of the pod. */
  within = <T>(make: () => T): T => {
    const home = openSync("/proc/thread-self/ns/pid", "r");
    try {
      if (!enterProcesses(this.processes)) throw new Error("this process may not make processes of the pod");
      return make();
    } finally {
      // All that is started later would be of the pod.
      if (!enterProcesses(home)) process.abort();
      closeSync(home);
    }
  };

  /** A second view of files. Answers the descriptor of its mount namespace; rejects in words for people. */
  async makeView({ unshare, mount }: SystemPrograms, steps: readonly string[]): Promise<number> {
    const words = ["--mount", "--propagation", "slave", "--", "/bin/sh", "-c", viewScript, "view", mount, ...steps];
    const child = this.within(() => spawn(unshare, words, { stdio: ["pipe", "pipe", "pipe"], detached: true, env }));
    await isMade(child);
    try {
      return openSync(`/proc/${child.pid}/ns/mnt`, "r");
    } finally {
      child.stdin.end();
    }
  }

  /** Ends all programs of the pod at once. */
  close(): void {
    this.#child.stdin!.end();
    closeSync(this.processes);
    closeSync(this.files);
  }
}

async function isMade(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = "";
  child.stdin!.on("error", () => undefined);
  child.stderr!.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdout!.once("data", () => resolve());
  child.once("error", reject);
  child.once("close", () => reject(new Error(`its files cannot be mounted: ${said.trim()}`)));
  await promise;
  for (const stream of [child.stdout!, child.stderr!]) stream.destroy();
}
