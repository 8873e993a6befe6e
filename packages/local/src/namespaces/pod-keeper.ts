// The first process of a pod. The pod's programs are in a PID namespace: they see each other and nobody else, and when
// its first process ends, the kernel ends all of them, daemons that have left their process group too. It ends with its
// supervisor, however that ends: it reads from a pipe of which nobody else has the other end.
import { closeSync, openSync } from "node:fs";
import { enterProcesses } from "@tulle/capture";
import type { HomeProcesses } from "./home-processes.ts";
import { viewScript } from "./pod-views.ts";
import { type Keeper, startKeeper } from "./start-keeper.ts";
import type { SystemPrograms } from "./system-programs.ts";

const failure = "its files cannot be mounted";

export class PodKeeper {
  /** Descriptors of the namespaces. */
  readonly processes: number;
  readonly files: number;
  readonly #keeper: Keeper;
  readonly #home: HomeProcesses;

  /** Resolves when nothing of the pod runs any more, whoever has ended it. */
  readonly ended: Promise<void>;

  private constructor(keeper: Keeper, home: HomeProcesses) {
    this.#keeper = keeper;
    this.#home = home;
    this.ended = new Promise((resolve) => keeper.once("exit", () => resolve()));
    this.processes = openSync(`/proc/${keeper.pid}/ns/pid_for_children`, "r");
    this.files = openSync(`/proc/${keeper.pid}/ns/mnt`, "r");
  }

  /** `steps` are those of the apps' view. Rejects in words for people; nothing stays then. */
  static async start(
    { unshare, mount }: SystemPrograms,
    home: HomeProcesses,
    steps: readonly string[],
  ): Promise<PodKeeper> {
    const making = [unshare, "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--"] as const;
    const keeper = await startKeeper([...making, "/bin/sh", "-c", viewScript, "pod", mount, ...steps], failure);
    keeper.unref();
    keeper.stdin.unref();
    return new PodKeeper(keeper, home);
  }

  /** Programs that the call spawns are of the pod. */
  within = <T>(make: () => T): T => {
    try {
      if (!enterProcesses(this.processes)) throw new Error("this process may not make processes of the pod");
      return make();
    } finally {
      this.#home.enter();
    }
  };

  /** A second view of files. Answers the descriptor of its mount namespace; rejects in words for people. */
  async makeView({ unshare, mount }: SystemPrograms, steps: readonly string[]): Promise<number> {
    const making = [unshare, "--mount", "--propagation", "slave", "--"] as const;
    const view = await startKeeper(
      [...making, "/bin/sh", "-c", viewScript, "view", mount, ...steps],
      failure,
      this.within,
    );
    try {
      return openSync(`/proc/${view.pid}/ns/mnt`, "r");
    } finally {
      view.stdin.end();
    }
  }

  /** Ends all programs of the pod at once. */
  close(): void {
    this.#keeper.stdin.end();
    closeSync(this.processes);
    closeSync(this.files);
  }
}
