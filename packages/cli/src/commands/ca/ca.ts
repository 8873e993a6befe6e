// `tulle ca`: the authority that signs workloads' certificates. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerRotateRoot } from "./ca-rotate-root.ts";
import { registerShow } from "./ca-show.ts";

export function register(command: Command, context: CommandContext): void {
  const add = (name: string, summary: string): Command => command.command(name).description(summary);
  registerShow(add("show", "What signs, and which roots workloads trust."), context);
  registerRotateRoot(
    add("rotate-root", "Begin the change to a new root, or to what your cacerts folder holds now."),
    context,
  );
  addExamples(command, [
    ["tulle ca show", "until when the authority is valid"],
    ["tulle ca rotate-root", "change the root without a refused connection"],
  ]);
}
