// `tulle ca rotate-root`: begins the change to a new root. It takes effect in steps, so that no connection is refused.
import { type Command, Option } from "commander";
import { endpoints } from "@tulle/config/api";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption, wholeNumber } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { authorityText } from "./ca-show.ts";

interface Options extends InstanceOption, OutputOption {
  readonly introduceSeconds?: number;
  readonly overlapSeconds?: number;
  readonly force?: boolean;
}

const longestSeconds = 999_999_999;

export function registerRotateRoot(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  const seconds = (name: string, purpose: string): Option =>
    new Option(`${name} <seconds>`, purpose).argParser(wholeNumber(0, longestSeconds));
  command.addOption(
    seconds("--introduce-seconds", "how long the new root is only made known (the life of a certificate unless told)"),
  );
  command.addOption(
    seconds(
      "--overlap-seconds",
      "how long the old root stays trusted after that (the longest life that can be asked for)",
    ),
  );
  command.option(
    "--force",
    "even with an overlap that is shorter than certificates live: some handshakes will be refused",
  );
  addExamples(command, [
    [
      "tulle ca rotate-root --introduce-seconds 86400 --overlap-seconds 90000",
      "be done in two days, where certificates live for one",
    ],
  ]);
  command.action(async (options: Options) => {
    const instance = await context.instance(options);
    const client = connect(instance);
    const { introduceSeconds, overlapSeconds, force } = options;
    const status = await withApiFailures(instance, () =>
      client.call(endpoints.rotateRoot, { introduceSeconds, overlapSeconds, force }),
    );
    await context.printData(status, options.output, () => authorityText(status, context.columns));
  });
}
