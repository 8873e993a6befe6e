// Asks before a cluster is changed: the kubeconfig may mean another one than the person thinks.
import { createInterface } from "node:readline/promises";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";

/** @throws {CommandFailure} where the answer is not yes, or nobody is there to give one */
export async function confirm(
  question: string,
  { yes }: { readonly yes?: boolean },
  context: CommandContext,
): Promise<void> {
  if (yes === true) return;
  if (!context.isTerminal) {
    throw new CommandFailure(`${question} Nobody is there to answer`, {
      hint: "Add -y.",
      exitCode: exitCodes.usage,
    });
  }
  context.stdout(`${question} [y/N] `);
  const lines = createInterface({ input: context.stdin });
  try {
    const { promise, resolve } = Promise.withResolvers<string>();
    lines.once("line", resolve).once("close", () => resolve(""));
    if (/^y(es)?$/i.test((await promise).trim())) return;
  } finally {
    lines.close();
  }
  throw new CommandFailure("nothing was changed");
}
