// `tulle vm audit`: what came of each token, and of each try to join.
import type { Command } from "commander";
import { endpoints } from "@tulle/config/api";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { formatFitting } from "../../printing/format-table.ts";

export function registerAudit(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.action(async (options: InstanceOption & OutputOption) => {
    const instance = await context.instance(options);
    const { events } = await withApiFailures(instance, () => connect(instance).call(endpoints.machines, {}));
    const rows = events.map(({ time, what, detail, peer, times }) => [
      time.slice(0, 19),
      what,
      peer,
      times === 1 ? detail : `${detail} (${times} times)`,
    ]);
    await context.printData(events, options.output, () =>
      rows.length === 0
        ? "Nothing yet."
        : formatFitting(["TIME", "WHAT", "BY", "DETAIL"], rows, { columns: context.columns, title: 3 }),
    );
  });
}
