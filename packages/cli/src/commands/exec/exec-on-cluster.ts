// `tulle exec` on a cluster: the API server runs the command in the pod's container, with this terminal where there is
// one.
import { type Pod, proxyContainers } from "@tulle/config";
import type { CommandStreams } from "@tulle/kubernetes";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { type ClusterInstance, withClusterFailures } from "../../instance/on-cluster.ts";
import { podOf } from "../../proxy-admin/proxy-admin.ts";
import type { ExecOptions } from "./exec.ts";

export async function execOnCluster(
  instance: ClusterInstance,
  text: string,
  argv: readonly string[],
  options: ExecOptions,
  context: CommandContext,
): Promise<void> {
  const { items } = await withApiFailures(instance, () => connect(instance).list("Pod"));
  const pod = podOf(items, text, options, context);
  const { name, namespace } = pod.metadata;
  const which = { namespace, pod: name, container: containerOf(pod, options.container), argv };
  const exitCode = await withClusterFailures(instance, instance.exec(which, ownStreams()));
  if (exitCode !== 0) throw new CommandFailure("", { exitCode });
}

/** Its programs' first, else its proxy: a gateway has nothing else. */
function containerOf({ metadata, spec }: Pod, wanted: string | undefined): string {
  if (wanted !== undefined && wanted !== "proxy" && wanted !== "app") return wanted;
  const isProxy = ({ name }: { readonly name: string }): boolean => proxyContainers.has(name);
  const app = spec.containers.find((each) => !isProxy(each));
  if (wanted !== "proxy" && app !== undefined) return app.name;
  const proxy = [...spec.containers, ...(spec.initContainers ?? [])].find(isProxy);
  if (proxy === undefined) throw new CommandFailure(`${metadata.name} has no proxy`);
  return proxy.name;
}

/** Of this process; a terminal passes each key on, so that Ctrl-C is the command's. */
function ownStreams(): CommandStreams {
  const { stdin: input, stdout: output, stderr: errors } = process;
  if (!input.isTTY || !output.isTTY) return { input, output, errors };
  const terminal = {
    size: () => ({ columns: output.columns, rows: output.rows }),
    follow: (listener: () => void) => {
      input.setRawMode(true);
      output.on("resize", listener);
      return () => {
        output.off("resize", listener);
        input.setRawMode(false);
      };
    },
  };
  return { input, output, errors, terminal };
}
