// `tulle rollout` of a cluster's Deployments: the template is told that it was restarted, as kubectl does, and the
// cluster replaces the pods.
import { setTimeout as delay } from "node:timers/promises";
import { chooseResource } from "../../arguments/choose-resource.ts";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { type ClusterInstance, withClusterFailures } from "../../instance/on-cluster.ts";
import type { DeploymentStatusOptions, RestartOptions } from "./deployments.ts";
import type { NamedOptions } from "./rollout-name.ts";

/** kubectl's, so that each sees what the other has asked for. */
const restartAnnotation = "kubectl.kubernetes.io/restartedAt";
const pollMs = 500;

/** What the cluster says of it; more than the mesh reads. */
interface ClusterDeployment {
  readonly metadata: { readonly name: string; readonly generation?: number };
  readonly spec: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly message?: string }[];
  };
}

export async function restartOnCluster(
  instance: ClusterInstance,
  names: readonly string[],
  options: RestartOptions,
  context: CommandContext,
): Promise<void> {
  if (options.container !== undefined) {
    throw new CommandFailure("on a cluster a proxy is replaced with its pod", {
      hint: "Leave -c out: the pods are replaced one after the other.",
      exitCode: exitCodes.usage,
    });
  }
  const annotations = { [restartAnnotation]: new Date().toISOString() };
  for (const text of names) {
    const { path, name } = await pathOf(instance, text, options);
    const body = { spec: { template: { metadata: { annotations } } } };
    const contentType = "application/strategic-merge-patch+json";
    await withClusterFailures(instance, instance.client.request({ method: "PATCH", path, contentType, body }));
    context.stdout(`deployment/${name} restarted\n`);
  }
}

export async function waitOnCluster(
  instance: ClusterInstance,
  names: readonly string[],
  options: DeploymentStatusOptions,
  context: CommandContext,
): Promise<void> {
  const deadline = performance.now() + options.timeout * 1000;
  for (const text of names) {
    const { path, name } = await pathOf(instance, text, options);
    for (let told: string | undefined; ;) {
      const missing = whatIsMissing(
        await withClusterFailures(instance, instance.client.request<ClusterDeployment>({ path })),
      );
      if (missing === undefined) {
        context.stdout(`deployment/${name} rolled out\n`);
        break;
      }
      if (missing !== told) context.stdout(`deployment/${name}: ${missing}\n`);
      told = missing;
      if (performance.now() > deadline)
        throw new CommandFailure(`deployment/${name} is not rolled out after ${options.timeout} s: ${missing}`);
      await delay(pollMs);
    }
  }
}

/** As kubectl reads it (k8s.io/kubectl, rollout_status.go). @throws {CommandFailure} where the cluster has given up */
export function whatIsMissing({ metadata, spec, status = {} }: ClusterDeployment): string | undefined {
  const { generation = 0 } = metadata;
  const { replicas: wanted = 1 } = spec;
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0, conditions = [] } = status;
  if (observedGeneration < generation) return "the cluster has not seen it yet";
  const progress = conditions.find(({ type }) => type === "Progressing");
  if (progress?.reason === "ProgressDeadlineExceeded") {
    throw new CommandFailure(`deployment/${metadata.name} does not go on: ${progress.message ?? "it took too long"}`);
  }
  if (updatedReplicas < wanted) return `${updatedReplicas} of ${wanted} pods are new`;
  if (replicas > updatedReplicas) return `${replicas - updatedReplicas} old pods are leaving`;
  return availableReplicas < updatedReplicas ? `${availableReplicas} of ${updatedReplicas} pods are ready` : undefined;
}

async function pathOf(instance: ClusterInstance, text: string, { namespace }: NamedOptions) {
  const { items } = await withApiFailures(instance, () => connect(instance).list("Deployment"));
  const { metadata } = chooseResource("Deployment", items, { text, namespace });
  // Loaded by now: the instance is a cluster's.
  const { objectPath } = await import("@tulle/kubernetes");
  return { path: objectPath("apps/v1", "Deployment", metadata.namespace, metadata.name), name: metadata.name };
}
