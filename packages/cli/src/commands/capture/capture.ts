// `tulle capture`: leads a pod's or machine's connections through its proxy without the programs' knowledge. One file a
// sub-command.
import type { Command } from "commander";
import { installedRules, isCaptured, removeCapture } from "@tulle/capture";
import type { CommandContext } from "../../command/command-module.ts";
import { CommandFailure } from "../../command/command-failure.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerInstall } from "./capture-install.ts";
import { withCaptureFailures } from "../../command/capture-failures.ts";
import { proxyIsReady, type Waiting, waitOption } from "../../command/wait-for-proxy.ts";

export function register(command: Command, context: CommandContext): void {
  const add = (name: string, summary: string): Command => command.command(name).description(summary);
  registerInstall(add("install", "Make the rules, in the place of older ones, or none where one fails."), context);
  add("remove", "Take the rules out. Programs then connect directly.").action(() =>
    withCaptureFailures(() => removeCapture()),
  );
  add("show", "Print the rules that the kernel has.").action(async () => {
    const rules = await withCaptureFailures(() => installedRules());
    if (rules === undefined) {
      throw new CommandFailure("nothing is captured in this network namespace", {
        hint: "Make the rules: tulle capture install",
      });
    }
    context.stdout(rules);
  });
  const validate = add("validate", "Fail where nothing is captured; needs no right.");
  validate
    .addOption(waitOption("first wait so long, or fail, until the pod's proxy is ready"))
    .action(async ({ waitForProxy }: Waiting) => {
      if (waitForProxy !== undefined) await proxyIsReady(waitForProxy);
      const captured = await isCaptured().catch((error: Error) => {
        throw new CommandFailure(`whether connections are captured cannot be told: ${error.message}`, { cause: error });
      });
      if (captured) return;
      throw new CommandFailure("nothing is captured in this network namespace", {
        hint: "A pod has to be made anew after the CNI plug-in was installed on its node: delete it.",
      });
    });
  addExamples(command, [
    ["tulle capture install --dry-run", "see the rules, and why each is there"],
    ["tulle capture install -d 22,15020,15021,15090", "on a machine that is reached by SSH"],
    ["tulle capture remove", "connect directly again"],
  ]);
}
