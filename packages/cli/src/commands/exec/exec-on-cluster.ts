// `tulle exec` on a cluster: the API server runs the command in the pod's container, with this terminal where there is
// one.
import type { Pod } from "@tulle/config";
import type { CommandStreams } from "@tulle/kubernetes";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import type { ClusterInstance } from "../../instance/on-cluster.ts";
import { podOf } from "../../proxy-admin/proxy-admin.ts";
import type { ExecOptions } from "./exec.ts";

const proxyContainer = "tulle-proxy";

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
  const exitCode = await instance.exec(which, ownStreams()).catch((error: Error) => {
    throw new CommandFailure(error.message, { hint: `Asked as ${instance.dir}.`, cause: error });
  });
  if (exitCode !== 0) throw new CommandFailure("", { exitCode });
}

/** Its programs' first, else its proxy: a gateway has nothing else. */
function containerOf({ spec }: Pod, wanted: string | undefined): string {
  if (wanted === "proxy") return proxyContainer;
  if (wanted !== undefined && wanted !== "app") return wanted;
  return spec.containers.find(({ name }) => name !== proxyContainer)?.name ?? proxyContainer;
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
