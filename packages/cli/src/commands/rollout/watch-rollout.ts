// `tulle rollout watch`: on a terminal a picture that is drawn anew when something has changed, elsewhere one line a
// change; until the Rollout has ended.
import type { Command } from "commander";
import type { RolloutView } from "@tulle/config/api";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples, wholeNumber } from "../../command/command-options.ts";
import { poll } from "../../instance/poll.ts";
import { type NamedOptions, rolloutName } from "./rollout-name.ts";
import { rolloutPicture } from "./rollout-picture.ts";
import { addRolloutArgument, failure, findRollout, type FoundRollout, readRollout } from "./rollouts.ts";

type WatchOptions = NamedOptions & { readonly timeout?: number };

export function registerWatch(watch: Command, context: CommandContext): void {
  addRolloutArgument(watch)
    .description("A live picture of a Rollout's steps and evidence, until it has ended: 0 completed, 1 aborted.")
    .option("--timeout <seconds>", "longest time", wholeNumber(1, 604_800));
  addExamples(watch, [["tulle rollout watch catalog --timeout 600", "in a pipeline: one line a change"]]);
  watch.action((words: readonly string[], options: WatchOptions) => watchRollout(rolloutName(words), options, context));
}

async function watchRollout(text: string, options: WatchOptions, context: CommandContext): Promise<void> {
  const found = await findRollout(text, options, context);
  const show = context.isTerminal ? drawing(context) : telling(context);
  const deadline = performance.now() + (options.timeout ?? Number.POSITIVE_INFINITY) * 1000;
  for await (const view of poll(() => readRollout(found))) {
    if (view !== undefined) {
      show(view);
      if (view.phase === "Completed") return;
      if (view.phase === "Aborted") throw failure(view);
    }
    if (performance.now() > deadline) {
      throw new CommandFailure(`rollout/${found.name} has not ended in ${options.timeout} s`, {
        hint: whatNext(found, view),
      });
    }
  }
}

function whatNext({ namespace, name }: FoundRollout, view: RolloutView | undefined): string {
  const [said, command] =
    view?.phase === "Idle" ? ["It begins when it is told to", "start"] : ["It goes on by itself. To end it", "abort"];
  return `${said}:\n  tulle rollout ${command} ${name} -n ${namespace}`;
}

/** What stands there already is not written again. */
function drawing(context: CommandContext): (view: RolloutView) => void {
  let drawn: readonly string[] = [];
  return (view) => {
    const lines = rolloutPicture(view, context);
    if (lines.join("\n") === drawn.join("\n")) return;
    if (drawn.length > 0) context.eraseLines(drawn.length);
    context.stdout(`${lines.join("\n")}\n`);
    drawn = lines;
  };
}

/** Seconds of a pause that runs out are no change. */
function telling(context: CommandContext): (view: RolloutView) => void {
  let told: ReadonlySet<string> = new Set();
  return ({ history, phase, message }) => {
    const now = `${phase}: ${message}`;
    const isCountdown = /for \d+ (?:s|min|h) more$/.test(now);
    const lines = [...history.map(({ at, text }) => `${at} ${text}`), ...(isCountdown ? [] : [now])];
    for (const line of lines) if (!told.has(line)) context.stdout(`${line}\n`);
    told = new Set(lines);
  };
}
