// How a cluster is kept to itself: the command that starts it has processes, mounts and a network of its own, and the
// kernel ends all of them with it.
import { ToolUnavailable } from "../tool-unavailable.ts";

/**
 * The command, so that it runs as the first process but one of namespaces of its own, which end with the process that
 * starts it. `/run` is empty there. @throws {ToolUnavailable} for who is not root
 */
export function inOwnNamespaces(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0)
    throw new ToolUnavailable("a cluster", "it takes root to make its nodes; run this as root");
  const unshare = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];
  // Mounts of pods are seen by all within, and by nobody outside. A shell collects the processes that others leave.
  const script = 'mount --make-rshared / && mount -t tmpfs -o mode=755 run /run && mkdir /run/netns && "$@" & wait $!';
  return ["setpriv", "--pdeathsig", "KILL", "--", ...unshare, "--", "sh", "-c", script, "sh", ...command];
}
