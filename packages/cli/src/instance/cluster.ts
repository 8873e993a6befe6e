// A cluster that a command is about: found as kubectl finds it, and asked with the user's own rights.
import path from "node:path";
import {
  inClusterAccess,
  KubeconfigError,
  kubeconfigAccess,
  KubernetesClient,
  KubernetesError,
} from "@tulle/kubernetes";
import { systemClock } from "@tulle/timing";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext } from "../command/command-module.ts";
import { tulleVersion } from "../command/installation.ts";

/** A command ends when its connections do. */
const idleMs = 20;

/** Undefined where there is no kubeconfig, none was named, and this is no pod of a cluster. @throws {CommandFailure}
 * */
export async function findCluster(
  { context, kubeconfig }: ClusterOptions,
  { env, cwd }: Pick<CommandContext, "env" | "cwd">,
): Promise<KubernetesClient | undefined> {
  try {
    const access = await kubeconfigAccess({
      ...(kubeconfig === undefined ? {} : { file: path.resolve(cwd, kubeconfig) }),
      ...(context === undefined ? {} : { context }),
      environment: env,
      clock: systemClock,
    });
    const found = access ?? (await inClusterAccess(env, systemClock));
    return found === undefined ? undefined : new KubernetesClient(found, `tulle/${tulleVersion()}`, idleMs);
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    throw new CommandFailure(error.message, { exitCode: exitCodes.noInstance, cause: error });
  }
}

/** Closes the client when the work is done, and tells in words what the API server refuses. @throws {CommandFailure}
 * */
export async function withCluster<T>(
  options: ClusterOptions,
  context: Pick<CommandContext, "env" | "cwd">,
  work: (client: KubernetesClient) => Promise<T>,
): Promise<T> {
  const client = await findCluster(options, context);
  if (client === undefined) {
    throw new CommandFailure("no cluster is known", {
      hint: "Name a kubeconfig by --kubeconfig or KUBECONFIG.",
      exitCode: exitCodes.noInstance,
    });
  }
  try {
    return await work(client);
  } catch (error) {
    throw clusterFailure(error, client);
  } finally {
    await client.close();
  }
}

/** What a person is told of a refusal; any other error as it is. */
export function clusterFailure(error: unknown, { access }: KubernetesClient): unknown {
  if (!(error instanceof KubernetesError)) return error;
  const hint = `Asked as ${access.origin}.`;
  if (error.code === 0)
    return new CommandFailure(error.message, { hint, exitCode: exitCodes.noInstance, cause: error });
  return new CommandFailure(error.message, { hint, cause: error });
}
