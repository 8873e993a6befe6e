// Starts a program that makes something, says so by a line, and keeps it until the supervisor closes its standard input
// or ends, however that is.
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";

const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

/** What keeps on behalf of a shell: it reads, and leaves children that nobody waits for to the kernel. */
export const keep = "exec env --ignore-signal=CHLD cat >/dev/null";

export interface Keeper extends ChildProcess {
  readonly stdin: Socket;
}

/** It is spawned within a call of `within`. Rejects when it ends instead: `failure` and what it said. */
export async function startKeeper(
  [program, ...args]: readonly [string, ...string[]],
  failure: string,
  within: <T>(make: () => T) => T = (make) => make(),
): Promise<Keeper> {
  // In a session of its own: who types Ctrl-C ends the supervisor, which ends pods in good order.
  const child = within(() => spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], detached: true, env }));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = "";
  child.stdin.on("error", () => undefined);
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdout.once("data", () => resolve());
  child.once("error", reject);
  child.once("close", () => reject(new Error(`${failure}: ${said.trim()}`)));
  await promise;
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  return child as ChildProcess as Keeper;
}
