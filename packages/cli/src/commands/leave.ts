// `tulle leave`: a machine leaves its mesh for good; its agent sees it, lets requests end, and stops.
import { rmSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { leaveMachine, readMachine } from "@tulle/agent/machine";
import { CommandFailure } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { asOwnerOf } from "../machine/folder-owner.ts";

export function register(command: Command, context: CommandContext): void {
  command.option("--state <folder>", "what the machine keeps of itself", "/var/lib/tulle");
  addExamples(command, [["tulle leave", "its WorkloadEntry goes at once, and its certificate is worth nothing"]]);
  command.action(async ({ state }: { readonly state: string }) => {
    const stateFolder = path.resolve(context.cwd, state);
    await asOwnerOf(stateFolder, async () => {
      const machine = readMachine(stateFolder);
      const left = await leaveMachine(stateFolder);
      if (!left.ok) {
        throw new CommandFailure(left.reason, {
          hint: "Beside the control plane it can be removed: tulle vm list, tulle vm remove.",
        });
      }
      // The running agent reads it no more; a new start has to join again.
      rmSync(path.join(stateFolder, "machine.json"));
      context.stdout(`${machine?.name} has left.\n`);
    });
  });
}
