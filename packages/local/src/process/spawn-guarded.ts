// Starts a program so that it cannot outlive its supervisor, however that ends.
//
// Each program leads a process group. Before it starts, a shell in the same group begins to read from a pipe whose
// other end only the supervisor holds; nothing is ever written there. When the supervisor is gone, the kernel closes
// its end, the read returns, and the shell kills the group, itself included. The guard is in place before the program
// runs its first instruction.
import { spawn, type ChildProcess } from "node:child_process";

export interface GuardedCommand {
  /** Program and arguments, without a shell. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Descriptor that takes standard output and standard error. */
  readonly logDescriptor: number;
  /** Descriptors handed to the program; it finds them from `firstInheritedDescriptor` on, in this order. */
  readonly inherit: readonly number[];
}

const guardDescriptor = 3;
/** Where a program finds the first descriptor that it inherits. */
export const firstInheritedDescriptor = 4;

// `kill -9 -<group>` is the one spelling that dash, bash and busybox share. "$$" is the leader's process id also in the
// subshell; `exec` keeps that id for the program.
const guardScript = `(read -r _ <&${guardDescriptor}; kill -9 "-$$") & exec "$@" ${guardDescriptor}<&-`;

export interface GuardedProcess {
  readonly child: ChildProcess;
  /** Ends the guard, and with it whatever is left of the group. Called when the leader has ended. */
  releaseGuard(): void;
  /** Sends a signal to the leader alone, as Kubernetes does. */
  signal(signal: NodeJS.Signals): void;
  /** Ends the whole group at once. */
  killGroup(): void;
}

export function spawnGuarded(command: GuardedCommand): GuardedProcess {
  const child = spawn("/bin/sh", ["-c", guardScript, "tulle-guard", ...command.argv], {
    cwd: command.cwd,
    env: command.env,
    detached: true,
    stdio: ["ignore", command.logDescriptor, command.logDescriptor, "pipe", ...command.inherit],
  });
  const guard = child.stdio[guardDescriptor];
  guard?.on("error", () => undefined); // the reader may be gone first
  const send = (target: number | undefined, signal: NodeJS.Signals): void => {
    if (target === undefined) return;
    try {
      process.kill(target, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  return {
    child,
    releaseGuard: () => void guard?.destroy(),
    signal: (signal) => {
      if (child.exitCode === null && child.signalCode === null) send(child.pid, signal);
    },
    killGroup: () => send(child.pid === undefined ? undefined : -child.pid, "SIGKILL"),
  };
}
