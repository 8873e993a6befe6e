// `tulle vm token`: what a machine needs to join, once.
import { type Command, Option } from "commander";
import { endpoints } from "@tulle/config/api";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption, duration } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";

interface Options extends InstanceOption, OutputOption {
  readonly group: string;
  readonly lifetime: number;
  readonly address?: readonly string[];
  readonly controlPlane?: readonly string[];
}

export function registerToken(command: Command, context: CommandContext): void {
  const several = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];
  command
    .requiredOption("--group <group>", "the WorkloadGroup that the machine becomes one of: name, or name.namespace")
    .addOption(
      new Option("--lifetime <duration>", "how long it can be used (20s, 90m, 24h; a week at most)")
        .argParser(duration(1000))
        .default(3_600_000, "1h"),
    )
    .option(
      "--address <ip>",
      "where the machine is reached, and nowhere else: an address or a range (10.9.0.0/24); where it calls from unless told (again for more)",
      several,
    )
    .option(
      "--control-plane <host:port>",
      "how the machine reaches the control plane; as it listens unless told (again for more)",
      several,
    );
  addInstanceOption(command);
  addOutputOption(command);
  addExamples(command, [
    ["tulle vm token --group ledger.shop >token", "into a file, which the machine takes by --token-file"],
    ["tulle vm token --group ledger.shop --address 10.9.0.4", "of use at that address alone"],
  ]);
  command.action(async (options: Options) => {
    const [group = "", namespace = "default"] = splitOnce(options.group);
    const instance = await context.instance(options);
    const body = {
      group,
      namespace,
      lifetimeSeconds: options.lifetime / 1000,
      ...(options.address === undefined ? {} : { addresses: options.address }),
      ...(options.controlPlane === undefined ? {} : { controlPlanes: options.controlPlane }),
    };
    const issued = await withApiFailures(instance, () => connect(instance).call(endpoints.issueToken, {}, { body }));
    // Alone on standard output, so that it can go into a file.
    await context.printData(issued, options.output, () => `${issued.token}\n`);
    if (options.output === undefined) {
      context.stderr(
        `Token ${issued.id}, for one machine, until ${issued.until}. There: tulle join --token-file FILE\n`,
      );
    }
  });
}

/** Namespaces have no dots. */
function splitOnce(text: string): readonly string[] {
  const dot = text.lastIndexOf(".");
  return dot < 0 ? [text] : [text.slice(0, dot), text.slice(dot + 1)];
}
