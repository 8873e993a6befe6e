// How a command gets into a pod of a running instance: the supervisor says it, who alone knows what its programs are
// started with.
import type { EntryAnswer, EntryRequest, PodEntry } from "@tulle/local";
import type { Instance } from "@tulle/local/instance";
import { FoundSupervisor } from "@tulle/local/supervisor-socket";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";

/** @throws {CommandFailure} */
export async function enterPod(
  instance: Instance,
  request: EntryRequest,
  context: Pick<CommandContext, "env">,
): Promise<PodEntry> {
  using supervisor = await FoundSupervisor.find(instance.stateDir, context.env);
  if (supervisor === undefined) {
    throw new CommandFailure(`nobody answers for ${instance.dir}`, { exitCode: exitCodes.noInstance });
  }
  const answer = await supervisor.ask(request).catch((error: Error) => {
    throw new CommandFailure(error.message, { exitCode: exitCodes.noInstance, cause: error });
  });
  const { entry, ...refusal } = answer as Partial<Record<"entry", PodEntry>> &
    Exclude<EntryAnswer, { entry: PodEntry }>;
  if (entry !== undefined) return entry;
  throw new CommandFailure(refusal.problem, refusal.hint === undefined ? {} : { hint: refusal.hint });
}
