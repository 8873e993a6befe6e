// `tulle rollout`: of Rollouts, which lead requests from one version to the next, and of Deployments, whose pods are
// replaced, in kubectl's words. KIND/NAME and KIND NAME say which is meant.
import type { Command } from "commander";
import { findKind } from "@tulle/config";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption, wholeNumber } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { type DeploymentStatusOptions, deploymentNames, registerRestart, waitForPods } from "./deployments.ts";
import { registerHistory, registerSteering, showRollout } from "./rollouts.ts";
import { registerWatch } from "./watch-rollout.ts";

const defaultTimeoutSeconds = 120;

interface Named {
  readonly metadata: { readonly name: string; readonly namespace: string };
}

type StatusOptions = DeploymentStatusOptions & OutputOption;

export function register(command: Command, context: CommandContext): void {
  registerSteering(command, context);
  registerStatus(command.command("status"), context);
  registerWatch(command.command("watch"), context);
  registerHistory(command.command("history"), context);
  registerRestart(command, context);
  addExamples(command, [
    ["tulle rollout start catalog", "the Rollout of that name begins with its first step"],
    ["tulle rollout watch catalog -n shop", "a live picture of steps and evidence, until it has ended"],
    ["tulle rollout restart deployment/webapp", "new pods, then the old ones leave"],
  ]);
}

function registerStatus(status: Command, context: CommandContext): void {
  addInstanceOption(status)
    .description("Where a Rollout stands; of Deployments: wait until they have the pods that they want.")
    .argument("<name...>", "rollout/<name>, <name>, or Deployments: deploy/<name>, <name>, deployment <name>")
    .option("-n, --namespace <namespace>", "their namespace")
    .option("--timeout <seconds>", "longest wait for pods", wholeNumber(1, 86_400), defaultTimeoutSeconds);
  addOutputOption(status);
  status.action(async (words: readonly string[], options: StatusOptions) => {
    const rollout = await meantRollout(words, options, context);
    if (rollout !== undefined) await showRollout(rollout, options, context);
    else await waitForPods(deploymentNames(words), options, context);
  });
}

/** A name alone is a Deployment's where there is one of that name, as before there were Rollouts. */
async function meantRollout(
  words: readonly string[],
  options: StatusOptions,
  context: CommandContext,
): Promise<string | undefined> {
  const [first = "", second, ...others] = words;
  const [kind, name = ""] = first.includes("/") ? first.split("/") : [first, second];
  if (findKind(kind ?? "") === "Rollout" && name !== "" && others.length === 0) return name;
  if (second !== undefined || first.includes("/")) return undefined;
  const instance = await context.instance(options);
  const client = connect(instance);
  const [deployments, rollouts] = await withApiFailures(instance, () =>
    Promise.all([client.list("Deployment"), client.list("Rollout")]),
  );
  const isNamed = ({ metadata }: Named): boolean =>
    [metadata.name, `${metadata.name}.${metadata.namespace}`].includes(first);
  if (deployments.items.some(isNamed)) return undefined;
  if (rollouts.items.some(isNamed)) return first;
  const names = (all: readonly Named[]): string =>
    all
      .map(({ metadata }) => `\n  ${metadata.name}.${metadata.namespace}`)
      .toSorted()
      .join("") || " none";
  throw new CommandFailure(`there is neither a Rollout nor a Deployment ${first}`, {
    hint: `Rollouts:${names(rollouts.items)}\nDeployments:${names(deployments.items)}`,
  });
}
