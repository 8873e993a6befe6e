// `tulle x wait`: returns when every proxy has acknowledged what was applied before (istioctl: x wait
// --for=distribution).
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import { endpoints, type ProxySync } from "@tulle/config/api";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../../command/command-module.ts";
import { addExamples, addInstanceOption, wholeNumber } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";

type WaitOptions = InstanceOption & { readonly timeout: number };

const defaultTimeoutSeconds = 30;
const pollMs = 50;

export function registerWait(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  command.option("--timeout <seconds>", "longest wait", wholeNumber(1, 86_400), defaultTimeoutSeconds);
  addExamples(command, [["tulle x wait --timeout 60", "fails when a proxy is still behind, or refuses something"]]);
  command.action((options: WaitOptions) => waitForProxies(options, context));
}

async function waitForProxies(options: WaitOptions, context: CommandContext): Promise<void> {
  const instance = await context.instance(options);
  const client = connect(instance);
  const deadline = performance.now() + options.timeout * 1000;
  for (;;) {
    // In this order: what is no longer waiting to be sent is part of the states that are read behind it.
    const { pending } = await withApiFailures(instance, () => client.call(endpoints.pending, {}));
    const proxies = await withApiFailures(instance, () => client.call(endpoints.syncStatus, {}));
    const refusing = namesOf(proxies, "ERROR");
    if (refusing.length > 0)
      throw new CommandFailure(`refused by ${refusing.join(", ")}`, { hint: "'tulle proxy-status' has the reasons." });
    const behind = namesOf(proxies, "STALE");
    if (!pending && behind.length === 0) {
      context.stdout(
        `${proxies.length} ${proxies.length === 1 ? "proxy has" : "proxies have"} the newest configuration\n`,
      );
      return;
    }
    if (performance.now() > deadline) {
      const who = behind.length === 0 ? "the control plane" : behind.join(", ");
      throw new CommandFailure(`still behind after ${options.timeout} s: ${who}`);
    }
    await delay(pollMs);
  }
}

function namesOf(proxies: readonly ProxySync[], state: string): readonly string[] {
  return proxies
    .filter(({ types }) => Object.values(types).some((type) => type.state === state))
    .map(({ proxy }) => proxy);
}
