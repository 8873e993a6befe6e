// What a person says to a Rollout, and where it stands.
import type { Command } from "commander";
import type { ApiClient } from "@tulle/config";
import { endpoints, type RolloutAction, type RolloutView } from "@tulle/config/api";
import type { Instance } from "@tulle/local/instance";
import { chooseResource } from "../../arguments/choose-resource.ts";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { timedLine } from "../../printing/timed-line.ts";
import { type NamedOptions, rolloutName } from "./rollout-name.ts";
import { rolloutPicture } from "./rollout-picture.ts";

const actions: readonly (readonly [action: RolloutAction, description: string, done: string])[] = [
  ["start", "Begin with the first step, or begin anew.", "started"],
  ["pause", "Stay where it is; what is measured beside the steps goes on.", "paused"],
  ["resume", "Go on after a pause.", "resumed"],
  ["promote", "Pass over the step where it stands.", "promoted"],
  ["abort", "Send everything to the stable version at once.", "aborted"],
];

export function registerSteering(command: Command, context: CommandContext): void {
  for (const [action, description, done] of actions) {
    const steering = addRolloutArgument(command.command(action).description(description));
    if (action === "promote") steering.option("--full", "pass over all steps: the canary gets everything");
    steering.action(async (words: readonly string[], options: NamedOptions & { readonly full?: boolean }) => {
      const { instance, client, namespace, name } = await findRollout(rolloutName(words), options, context);
      const full = options.full === true ? { full: true } : {};
      const view = await withApiFailures(instance, () =>
        client.call(endpoints.steerRollout, { namespace, name, action, ...full }),
      );
      context.stdout(`rollout/${name} ${done}: ${view.message}\n`);
    });
  }
}

export function addRolloutArgument(command: Command): Command {
  return addInstanceOption(command)
    .argument("<rollout...>", "the Rollout: <name>, <name>.<namespace>, rollout/<name>, or rollout <name>")
    .option("-n, --namespace <namespace>", "its namespace");
}

export function registerHistory(history: Command, context: CommandContext): void {
  addRolloutArgument(history).description("What has happened to a Rollout, oldest first.");
  addOutputOption(history);
  history.action(async (words: readonly string[], options: NamedOptions & OutputOption) => {
    const found = await findRollout(rolloutName(words), options, context);
    const { history: entries } = await readRollout(found);
    const lines = entries.map(({ at, text }) => `${timedLine(at, text, context.columns)}\n`);
    await context.printData(entries, options.output, () =>
      lines.length === 0 ? "It has not been started.\n" : lines.join(""),
    );
  });
}

/** Fails for one that was aborted, so that a script sees it. */
export async function showRollout(
  name: string,
  options: NamedOptions & OutputOption,
  context: CommandContext,
): Promise<void> {
  const view = await readRollout(await findRollout(name, options, context));
  await context.printData(view, options.output, () => rolloutPicture(view, context).join("\n") + "\n");
  if (view.phase === "Aborted") throw failure(view);
}

/** Why stands above it, in what was shown. */
export function failure({ namespace, name }: RolloutView): CommandFailure {
  return new CommandFailure(`rollout/${name} was aborted`, {
    hint: `Once the canary is mended:\n  tulle rollout start ${name} -n ${namespace}`,
  });
}

export interface FoundRollout {
  readonly instance: Instance;
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
}

export async function findRollout(text: string, options: NamedOptions, context: CommandContext): Promise<FoundRollout> {
  const instance = await context.instance(options);
  const client = connect(instance);
  const { items } = await withApiFailures(instance, () => client.list("Rollout"));
  const { metadata } = chooseResource("Rollout", items, { text, namespace: options.namespace });
  return { instance, client, namespace: metadata.namespace, name: metadata.name };
}

export function readRollout({ instance, client, namespace, name }: FoundRollout): Promise<RolloutView> {
  return withApiFailures(instance, () => client.call(endpoints.rollout, { namespace, name }));
}
