// One bounded run of the load generator wrk, read back as numbers.
import { debianTool } from "../../tests/tools/debian-tool.ts";
import { runCommand } from "../../tests/tools/run-command.ts";
import { onCore } from "./on-core.ts";

export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly core: number;
  /** `name: value` */
  readonly headers?: readonly string[];
}

/** @throws when any answer is no 2xx or any connection fails: such a run measures something else. */
export async function runWrk(load: Load): Promise<LoadResult> {
  const [command, args] = onCore(load.core, await debianTool("wrk"), [
    "-t1",
    `-c${load.connections}`,
    `-d${load.seconds}s`,
    "--latency",
    // Of wrk's own two seconds a busy machine takes one of sixty-four connections now and then.
    "--timeout",
    "10s",
    ...(load.headers ?? []).flatMap((line) => ["-H", line]),
    load.url,
  ]);
  const result = await runCommand(command, args, { timeoutMs: (load.seconds + 30) * 1000 });
  if (result.code !== 0) throw new Error(`wrk ended with ${result.code}: ${result.stderr}${result.stdout}`);
  return parseWrk(result.stdout);
}

export function parseWrk(output: string): LoadResult {
  const failures = /Socket errors:.*|Non-2xx or 3xx responses:.*/.exec(output)?.[0];
  if (failures !== undefined) throw new Error(`the load did not go through: ${failures}`);
  return {
    requests: Number(find(output, /(\d+) requests in/)),
    requestsPerSecond: Number(find(output, /Requests\/sec:\s+([\d.]+)/)),
    p50Ms: milliseconds(find(output, /\s50%\s+(\S+)/)),
    p99Ms: milliseconds(find(output, /\s99%\s+(\S+)/)),
  };
}

function find(output: string, pattern: RegExp): string {
  const match = pattern.exec(output);
  if (match === null) throw new Error(`wrk printed no ${pattern}: ${output}`);
  return match[1]!;
}

const unitsInMs: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

function milliseconds(text: string): number {
  const [, number, unit] = /^([\d.]+)([a-z]+)$/.exec(text) ?? [];
  const factor = unitsInMs[unit ?? ""];
  if (factor === undefined) throw new Error(`not a duration of wrk's: ${text}`);
  return Number(number) * factor;
}
