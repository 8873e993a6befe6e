// `tulle cni`: the program of each node that captures pods for the CNI plug-in, and keeps the plug-in in place.
import path from "node:path";
import type { Command } from "commander";
import { inClusterAccess, KubernetesClient, KubernetesError } from "@tulle/kubernetes";
import { PluginFiles, socketName, startCaptureServer, startRepair } from "@tulle/kubernetes/cni";
import { Logging } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { CommandFailure } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { tulleVersion } from "../command/installation.ts";

interface Options {
  readonly confDir: string;
  readonly binDir: string;
  readonly networksDir: string;
  readonly socketDir: string;
  readonly plugin: string;
  readonly excludeNamespaces: string;
}

export function register(command: Command, { env }: CommandContext): void {
  addExamples(command, [
    ["tulle install --set cni.enabled=true --set global.cni.enabled=true", "have a DaemonSet run it on each node"],
    ["kubectl logs -n tulle-system ds/tulle-cni", "what it has captured"],
  ]);
  command
    .option("--conf-dir <folder>", "network configuration of the container runtime", "/etc/cni/net.d")
    .option("--bin-dir <folder>", "its plug-ins", "/opt/cni/bin")
    .option("--networks-dir <folder>", "where it mounts the networks of pods", "/var/run/netns")
    .option("--socket-dir <folder>", "a folder of root's alone, at the same path on the node", "/run/tulle-cni")
    .option("--plugin <file>", "the plug-in's program, which is copied to the runtime's", "/opt/cni/tulle-cni")
    .option("--exclude-namespaces <names>", "pods there start without it", "tulle-system,kube-system")
    .action(async (options: Options) => {
      const stop = new AbortController();
      for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stop.abort());
      const log = new Logging({ level: "info" }).logger("cni");
      const access = await inClusterAccess(env, systemClock);
      if (access === undefined) throw new CommandFailure("this is no pod of a cluster, or one without an account");
      const client = new KubernetesClient(access, `tulle-cni/${tulleVersion()}`);
      const settings = {
        socket: path.join(options.socketDir, socketName),
        excludeNamespaces: options.excludeNamespaces.split(",").filter((name) => name !== ""),
      };
      const files = new PluginFiles({
        configurationFolder: options.confDir,
        programFolder: options.binDir,
        program: options.plugin,
        settings,
        log,
      });
      const { NODE_NAME: nodeName = "" } = env;
      if (nodeName === "") throw new CommandFailure("NODE_NAME is not set: the node that this program runs on");
      // The socket first: a runtime that finds the plug-in calls it.
      await using _server = await startCaptureServer({
        folder: options.socketDir,
        networksFolder: options.networksDir,
        client,
        log,
      });
      using _repair = startRepair({ client, nodeName, clock: systemClock, log });
      await files.keep(stop.signal);
      // After an upgrade the next one goes on; meanwhile no pod starts.
      if (await isUninstalled(client, env)) await files.remove();
      await client.close();
    });
}

/** One that may ask no more is uninstalled, too: its rights went first. */
async function isUninstalled(client: KubernetesClient, env: CommandContext["env"]): Promise<boolean> {
  const { TULLE_CNI_DAEMON_SET: name = "", POD_NAMESPACE: namespace = "" } = env;
  if (name === "") return false;
  try {
    const { metadata } = await client.request<{ metadata: { deletionTimestamp?: string } }>({
      path: `/apis/apps/v1/namespaces/${namespace}/daemonsets/${name}`,
    });
    return metadata.deletionTimestamp !== undefined;
  } catch (error) {
    return error instanceof KubernetesError && [401, 403, 404].includes(error.code);
  }
}
