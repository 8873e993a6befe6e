// To which PID namespace what the supervisor starts outside of pods belongs. Whoever has made a process of a pod has to
// come back. Root comes back to the machine's namespace; root of a user namespace may enter none that is not of that
// (setns(2)), so it has one more, which begins before the first pod, and the pods' are inside of it.
import { closeSync, openSync } from "node:fs";
import { enterProcesses } from "@tulle/capture";
import { keep, type Keeper, startKeeper } from "./start-keeper.ts";
import type { SystemPrograms } from "./system-programs.ts";

export class HomeProcesses {
  readonly #descriptor: number;
  readonly #keeper: Keeper | undefined;
  #isClosed = false;

  private constructor(descriptor: number, keeper?: Keeper) {
    this.#descriptor = descriptor;
    this.#keeper = keeper;
  }

  /** For root of the machine. */
  static ofMachine(): HomeProcesses {
    return new HomeProcesses(openSync("/proc/self/ns/pid", "r"));
  }

  /**
   * For root of a user namespace. `onLost` is called when somebody has ended its first process, and with it all pods:
   * nothing can be started any more. Rejects in words for people.
   */
  static async ofUserNamespace({ unshare }: SystemPrograms, onLost: () => void): Promise<HomeProcesses> {
    const making = [unshare, "--pid", "--fork", "--kill-child", "--", "/bin/sh", "-c", `echo made; ${keep}`] as const;
    const keeper = await startKeeper(making, "there is no PID namespace for programs outside of pods");
    keeper.unref();
    keeper.stdin.unref();
    const home = new HomeProcesses(openSync(`/proc/${keeper.pid}/ns/pid_for_children`, "r"), keeper);
    keeper.once("exit", () => home.#isClosed || onLost());
    home.enter();
    return home;
  }

  enter(): void {
    // All that is started later would be of the pod.
    if (!enterProcesses(this.#descriptor)) process.abort();
  }

  /** What is left of what was started ends. */
  close(): void {
    this.#isClosed = true;
    this.#keeper?.stdin.end();
    closeSync(this.#descriptor);
  }
}
