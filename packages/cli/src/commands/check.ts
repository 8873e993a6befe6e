// `tulle check`: whether what is installed in a cluster is healthy (istioctl: verify-install, check).
import type { Command } from "commander";
import { endpoints, type ProxySync } from "@tulle/config/api";
import { checkInstallation, type CheckResult } from "@tulle/kubernetes";
import { CommandFailure } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext, OutputOption } from "../command/command-module.ts";
import { addClusterOptions, addExamples, addOutputOption } from "../command/command-options.ts";
import { tulleVersion } from "../command/installation.ts";
import { resultsText } from "../installing/check-results.ts";
import { namespaceOf, revisionOf } from "../installing/installation-options.ts";
import { withCluster } from "../instance/cluster.ts";
import { clusterInstance } from "../instance/cluster-instance.ts";

interface Options extends ClusterOptions, OutputOption {
  readonly namespace?: string;
  readonly revision?: string;
}

export function register(command: Command, context: CommandContext): void {
  addOutputOption(addClusterOptions(command))
    .option("-n, --namespace <namespace>", "namespace of the control plane (default: tulle-system)")
    .option("--revision <name>", "which control plane (default: default)");
  addExamples(command, [
    ["tulle check --context prod", "fails where something is wrong, and says what to do"],
    ["tulle check -o json", "for a program"],
  ]);
  command.action(async (options: Options) => {
    const asked = { namespace: namespaceOf(options), revision: revisionOf(options), version: tulleVersion() };
    const looked = await withCluster(options, context, (client) => checkInstallation({ client, ...asked }));
    const results = [...looked, await proxies(options, context)];
    await context.printData(results, options.output, () => resultsText(results, context.columns));
    if (results.some(({ outcome }) => outcome === "error"))
      throw new CommandFailure("Tulle is not well in this cluster");
  });
}

/** What the control plane's replicas know of those that have come to them. */
async function proxies(options: Options, context: CommandContext): Promise<CheckResult> {
  const what = "Proxies";
  try {
    const instance = await clusterInstance(options, context);
    return judged(what, (await instance?.api.call(endpoints.syncStatus, {})) ?? []);
  } catch (error) {
    return { what, outcome: "warning", message: `not looked at: ${(error as Error).message}` };
  }
}

export function judged(what: string, all: readonly ProxySync[], version = tulleVersion()): CheckResult {
  const named = (state: string): readonly string[] =>
    all.filter(({ types }) => Object.values(types).some((type) => type.state === state)).map(({ proxy }) => proxy);
  const refusing = named("ERROR");
  if (refusing.length > 0) {
    const message = `${refusing.join(", ")} refuse a part of their configuration: tulle proxy-status says which`;
    return { what, outcome: "error", message };
  }
  const counted = `${all.length} ${all.length === 1 ? "is" : "are"} connected`;
  const others = all.filter(({ istio_version: own }) => own !== version);
  if (others.length > 0) {
    const versions = [...new Set(others.map(({ istio_version: own }) => own || "an unknown version"))].join(", ");
    const message = `${counted}, ${others.length} of them of ${versions}: tulle rollout restart replaces their pods`;
    return { what, outcome: "warning", message };
  }
  const stale = named("STALE");
  if (stale.length > 0) return { what, outcome: "warning", message: `${counted}; behind: ${stale.join(", ")}` };
  return { what, outcome: "good", message: `${counted}, with the newest configuration, of version ${version}` };
}
