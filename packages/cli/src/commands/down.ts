// `tulle down`: ends a running instance in good order, or at once.
import type { Command } from "commander";
import { readInstance } from "@tulle/local/instance";
import { FoundSupervisor } from "@tulle/local/supervisor-socket";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { requireHere } from "../instance/control-plane-elsewhere.ts";
import { addExamples, addInstanceOption, wholeNumber } from "../command/command-options.ts";

interface DownOptions extends InstanceOption {
  readonly force?: boolean;
  readonly timeout: number;
}

const lookIntervalMs = 25;

export function register(command: Command, context: CommandContext): void {
  command.argument("[folder]", "folder of the instance (default: as with --dir)");
  addInstanceOption(command);
  command.option("--force", "end every process at once");
  command.option("--timeout <seconds>", "wait this long for a good end, then force it", wholeNumber(1, 3600), 60);
  addExamples(command, [
    ["tulle down samples/shop", "let requests finish, then end the shop"],
    ["tulle down --force", "end the only running instance at once"],
  ]);
  command.action(async (folder: string | undefined, options: DownOptions) => {
    const choice: InstanceOption = folder === undefined ? options : { dir: folder };
    const instance = await context.instance(choice);
    requireHere(instance);
    using supervisor = await FoundSupervisor.find(instance.stateDir, context.env);
    if (supervisor === undefined) {
      throw new CommandFailure(`nobody answers for ${instance.dir}`, {
        hint: `Its files name process ${instance.pid}, but that one does not listen in ${instance.stateDir}: nothing is ended.`,
        exitCode: exitCodes.noInstance,
      });
    }
    const gone = (): Promise<boolean> => supervisor.isGone();
    if (options.force !== true) {
      supervisor.signal("SIGTERM");
      if (await within(options.timeout * 1000, gone)) {
        context.stdout(`${instance.dir} is down\n`);
        return;
      }
    }
    // The guards of its processes end them once the supervisor is gone.
    supervisor.signal("SIGKILL");
    if (!(await within(5000, gone))) throw new CommandFailure(`process ${supervisor.pid} does not end`);
    if ((await readInstance(instance.dir)) !== undefined) throw new CommandFailure(`${instance.dir} runs again`);
    context.stdout(`${instance.dir} was ended by force\n`);
  });
}

async function within(timeoutMs: number, condition: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    if (await condition()) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, lookIntervalMs);
    await promise;
  }
  return condition();
}
