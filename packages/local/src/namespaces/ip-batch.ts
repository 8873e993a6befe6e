// Runs commands of ip(8) in a network, one program for all of them, and sets what the kernel has as files.
import { writeFileSync } from "node:fs";
import { failureOf, type NetworkNamespace, runTool } from "@tulle/capture";

/** @throws with what ip said, and the command that it said it of */
export async function ipBatch(network: NetworkNamespace, commands: readonly string[]): Promise<void> {
  const input = `${commands.join("\n")}\n`;
  const result = await network.within(() => runTool("ip", ["-batch", "-"], input, {}));
  if (result.exitCode !== 0) throw failureOf("ip", result);
}

/** Names as in sysctl(8); they are the network's own. */
export function setSysctls(network: NetworkNamespace, values: Readonly<Record<string, string>>): void {
  network.within(() => {
    for (const [name, value] of Object.entries(values)) writeFileSync(`/proc/sys/${name.replaceAll(".", "/")}`, value);
  });
}
