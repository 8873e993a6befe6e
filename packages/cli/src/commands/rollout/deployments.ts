// `tulle rollout` of Deployments, in kubectl's words: their pods are replaced one after the other, and waited for.
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { type ApiClient, type Deployment, findKind, type Pod, selects } from "@tulle/config";
import { chooseResource } from "../../arguments/choose-resource.ts";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples, addInstanceOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { isOnCluster } from "../../instance/on-cluster.ts";
import { podRow } from "../../printing/pod-row.ts";
import { restartOnCluster, waitOnCluster } from "./cluster-deployments.ts";
import type { NamedOptions } from "./rollout-name.ts";

export type RestartOptions = NamedOptions & { readonly container?: string };
export type DeploymentStatusOptions = NamedOptions & { readonly timeout: number };

// The annotations are the local platform's (packages/local/src/reconcile/pod-resource.ts); loading its package for two
// names would double this command's start.
const restartAnnotation = "local.tulle.io/restarted-at";
const proxyRestartAnnotation = "local.tulle.io/proxy-restarted-at";
const proxyContainers = ["proxy", "istio-proxy"];
const pollMs = 100;

export function registerRestart(command: Command, context: CommandContext): void {
  const restart = command
    .command("restart")
    .description("Replace the pods of Deployments, or start their proxies again, one after the other.");
  addInstanceOption(restart)
    .argument("<deployments...>", "Deployments: <name>, <name>.<namespace>, deploy/<name>, or deployment <name>")
    .option("-n, --namespace <namespace>", "their namespace")
    .option("-c, --container <name>", "only this of each pod; proxy is the one that can be named");
  addExamples(restart, [
    ["tulle rollout restart webapp", "new pods, then the old ones leave"],
    ["tulle rollout restart deploy/webapp -n shop -c proxy", "the programs go on, out of their Services meanwhile"],
  ]);
  restart.action((words: readonly string[], options: RestartOptions) =>
    restartPods(deploymentNames(words), options, context),
  );
}

/** kubectl's spellings, and names alone: nothing else has pods to replace. */
export function deploymentNames(words: readonly string[]): readonly string[] {
  const [first = "", ...others] = words;
  const kind = findKind(first);
  const isKindFirst = kind === "Deployment" || (kind !== undefined && others.length > 0);
  const names = (isKindFirst ? others : words).map(nameAfterKind);
  const isOfOther = isKindFirst && kind !== "Deployment";
  if (names.length > 0 && !isOfOther && !names.includes("")) return names;
  throw new CommandFailure("name one or more Deployments, and nothing else", {
    hint: "For example: tulle rollout restart deployment/webapp -n shop",
    exitCode: exitCodes.usage,
  });
}

/** Empty for what is of another kind. */
function nameAfterKind(text: string): string {
  const slash = text.indexOf("/");
  if (slash < 0) return text;
  return findKind(text.slice(0, slash)) === "Deployment" ? text.slice(slash + 1) : "";
}

async function restartPods(names: readonly string[], options: RestartOptions, context: CommandContext): Promise<void> {
  const { container } = options;
  if (container !== undefined && !proxyContainers.includes(container)) {
    throw new CommandFailure(`"${container}" cannot be started again by itself: only the proxy can`, {
      hint: "Without -c the whole pods are replaced.",
      exitCode: exitCodes.usage,
    });
  }
  const instance = await context.instance(options);
  if (isOnCluster(instance)) return restartOnCluster(instance, names, options, context);
  const annotation = container === undefined ? restartAnnotation : proxyRestartAnnotation;
  const at = new Date().toISOString();
  const client = connect(instance);
  for (const name of names) {
    const deployment = await withApiFailures(instance, () => findDeployment(client, name, options));
    const pods = await withApiFailures(instance, () => podsOf(client, deployment));
    for (const pod of pods) {
      const annotations = { ...pod.metadata.annotations, [annotation]: at };
      await withApiFailures(instance, () => client.apply({ ...pod, metadata: { ...pod.metadata, annotations } }));
    }
    context.stdout(
      `deployment/${deployment.metadata.name} ${container === undefined ? "restarted" : "restarts its proxies"}\n`,
    );
  }
}

export async function waitForPods(
  names: readonly string[],
  options: DeploymentStatusOptions,
  context: CommandContext,
): Promise<void> {
  const instance = await context.instance(options);
  if (isOnCluster(instance)) return waitOnCluster(instance, names, options, context);
  const client = connect(instance);
  const deadline = performance.now() + options.timeout * 1000;
  for (const text of names) {
    let told: string | undefined;
    for (;;) {
      const deployment = await withApiFailures(instance, () => findDeployment(client, text, options));
      const name = `deployment/${deployment.metadata.name}`;
      const missing = whatIsMissing(deployment, await withApiFailures(instance, () => podsOf(client, deployment)));
      if (missing === undefined) {
        context.stdout(`${name} rolled out\n`);
        break;
      }
      if (missing !== told) context.stdout(`${name}: ${missing}\n`);
      told = missing;
      if (performance.now() > deadline)
        throw new CommandFailure(`${name} is not rolled out after ${options.timeout} s: ${missing}`);
      await delay(pollMs);
    }
  }
}

/** What stands between the pods and what the Deployment wants; undefined when nothing does. */
function whatIsMissing(deployment: Deployment, pods: readonly Pod[]): string | undefined {
  const { replicas } = deployment.spec;
  const waiting = pods.filter(({ metadata }) =>
    [restartAnnotation, proxyRestartAnnotation].some((name) => metadata.annotations?.[name] !== undefined),
  );
  if (waiting.length > 0) return `${waiting.length} of ${pods.length} pods are yet to be restarted`;
  const ready = pods.filter((pod) => podRow(pod).ready).length;
  if (ready < replicas) return `${ready} of ${replicas} pods are ready`;
  return pods.length > replicas ? `${pods.length - replicas} old pods are leaving` : undefined;
}

async function findDeployment(client: ApiClient, text: string, options: NamedOptions): Promise<Deployment> {
  const { items } = await client.list("Deployment");
  return chooseResource("Deployment", items, { text, namespace: options.namespace });
}

/** Those of its selector: a pod says only of which template it is. */
async function podsOf(client: ApiClient, { metadata, spec }: Deployment): Promise<readonly Pod[]> {
  const { items } = await client.list("Pod", metadata.namespace);
  return items.filter(({ metadata: { labels = {} } }) => selects(spec.selector.matchLabels ?? {}, labels));
}
