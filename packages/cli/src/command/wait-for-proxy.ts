// Commands of a pod's containers that hold others back until the proxy beside them is ready.
import { waitUntilReady } from "@tulle/agent/wait";
import { InvalidArgumentError, Option } from "commander";
import { CommandFailure } from "./command-failure.ts";

const periodMs = 100;

export interface Waiting {
  readonly waitForProxy?: number;
}

export function waitOption(meaning: string): Option {
  return new Option("--wait-for-proxy <seconds>", meaning).argParser(wholeSeconds);
}

/** @throws {CommandFailure} when the time is over */
export async function proxyIsReady(seconds: number, address = "127.0.0.1"): Promise<void> {
  // The first process of a container has no default for it.
  const end = (): void => process.exit(143);
  process.once("SIGTERM", end);
  const answer = await waitUntilReady({ address, timeoutMs: seconds * 1000, periodMs });
  process.off("SIGTERM", end);
  if (answer !== undefined) throw new CommandFailure(`the agent is not ready after ${seconds} s: ${answer}`);
}

export function wholeSeconds(text: string): number {
  const value = Number(text);
  if (/^\d{1,6}$/.test(text) && value > 0) return value;
  throw new InvalidArgumentError("a whole number of seconds, such as 60, is expected");
}
