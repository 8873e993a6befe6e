// `tulle manifest generate`: what an installation is made of, as YAML.
import type { Command } from "commander";
import { stringify } from "yaml";
import { inOrder } from "@tulle/kubernetes";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { addValuesOptions, installationOf, type ValuesOptions } from "../../installing/installation-options.ts";

export function register(command: Command, context: CommandContext): void {
  const generate = command.command("generate").description("Print the objects that tulle install applies.");
  addValuesOptions(generate);
  addExamples(generate, [
    ["tulle manifest generate -f values.yaml > tulle.yaml", "for a repository, kustomize or Argo CD"],
  ]);
  generate.action(async (options: ValuesOptions) => {
    const { objects } = await installationOf(options, context);
    for (const object of inOrder(objects)) context.stdout(`---\n${printed(object)}`);
  });
}

/** kubectl reads YAML 1.1, in which a plain `y` or `on` is a truth value. */
function printed(object: unknown): string {
  return stringify(object, { aliasDuplicateObjects: false, version: "1.1" });
}
