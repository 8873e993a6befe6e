// kubectl, for tests beside a cluster: they find it by KUBECONFIG.
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { startProcess, waitFor } from "../processes.ts";
import { runCommand, lastLines } from "../run-command.ts";

/** Resolves to its standard output; fails with what it said. */
export async function kubectl(args: readonly string[], timeoutMs = 120_000): Promise<string> {
  const result = await runCommand("kubectl", args, { timeoutMs });
  if (result.code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${lastLines(result)}`);
  return result.stdout;
}

/** By server-side apply, in their order. */
export async function applyObjects(items: readonly object[]): Promise<void> {
  const args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
  const child = spawn("kubectl", args, { stdio: ["pipe", "ignore", "pipe"] });
  child.stdin.end(JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const said = text(child.stderr);
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject).once("close", resolve);
  if ((await promise) !== 0) throw new Error(`kubectl ${args.join(" ")}: ${await said}`);
}

/** With an object on its standard input; what it warns of is part of what it says. */
export async function kubectlWith(args: readonly string[], object: object): Promise<string> {
  const started = await startProcess("kubectl", args, { input: JSON.stringify(object) });
  const { code } = await started.exited;
  await waitFor(() => started.child.stdout?.closed && started.child.stderr?.closed, { what: "its words" });
  if (code !== 0) throw new Error(started.output());
  return args.includes("json") ? started.stdout() : started.output();
}

/** All that is in it goes with it, later. */
export async function deleteNamespace(name: string): Promise<void> {
  await kubectl(["delete", "namespace", name, "--ignore-not-found", "--wait=false"]);
}
