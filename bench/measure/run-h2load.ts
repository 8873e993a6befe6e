// One bounded run of the load generator h2load, read back as numbers.
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { debianTool } from "../../tests/tools/debian-tool.ts";
import { runCommand } from "../../tests/tools/run-command.ts";
import { onCore } from "./on-core.ts";
import type { LoadResult } from "./run-wrk.ts";

export interface H2load {
  readonly url: string;
  /** False = HTTP/2. */
  readonly isHttp1?: boolean;
  /** Of all connections together; undefined = as many as there can be. */
  readonly requestsPerSecond?: number | undefined;
  readonly connections: number;
  /** Requests at a time on each. */
  readonly streams: number;
  readonly seconds: number;
  /** `name: value`; one of a pseudo-header takes its place. */
  readonly headers: readonly string[];
  /** What each request brings; undefined = a GET without a body. */
  readonly bodyFile: string | undefined;
  /** Of each answer: one that is shorter is none, whatever its status is. */
  readonly answerBytes: number;
  /** Where the times of single requests are kept meanwhile. */
  readonly folder: string;
  readonly core: number;
}

/** @throws when any answer is no 2xx or any stream fails: such a run measures something else. */
export async function runH2load(load: H2load): Promise<LoadResult> {
  const log = path.join(load.folder, "h2load.log");
  const [command, args] = onCore(load.core, await debianTool("h2load"), [
    "-t1",
    `-c${load.connections}`,
    `-m${load.streams}`,
    `-D${load.seconds}`,
    ...(load.isHttp1 === true ? ["--h1"] : []),
    ...(load.requestsPerSecond === undefined ? [] : [`--rps=${load.requestsPerSecond / load.connections}`]),
    `--log-file=${log}`,
    ...load.headers.flatMap((line) => ["-H", line]),
    ...(load.bodyFile === undefined ? [] : ["-d", load.bodyFile]),
    load.url,
  ]);
  const result = await runCommand(command, args, { timeoutMs: (load.seconds + 30) * 1000 });
  if (result.code !== 0) throw new Error(`h2load ended with ${result.code}: ${result.stderr}${result.stdout}`);
  // Start, status and duration in microseconds, a line each.
  const durationsUs = (await readFile(log, "latin1"))
    .trimEnd()
    .split("\n")
    .map((line) => Number(line.split("\t")[2]))
    .toSorted((one, other) => one - other);
  await rm(log);
  const [, done = "", failed = "", errored = ""] =
    /requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored/.exec(result.stdout) ?? [];
  const requests = Number(done);
  const dataBytes = Number(/ \((\d+)\) data$/m.exec(result.stdout)?.[1]);
  if (!(requests > 0 && dataBytes >= requests * load.answerBytes))
    throw new Error(`answers fell short: ${result.stdout}`);
  if (failed !== "0" || errored !== "0" || !/ 0 3xx, 0 4xx, 0 5xx/.test(result.stdout))
    throw new Error(`the load did not go through: ${result.stdout}`);
  const atShare = (share: number): number => durationsUs[Math.floor(durationsUs.length * share)]! / 1000;
  return { requests, requestsPerSecond: requests / load.seconds, p50Ms: atShare(0.5), p99Ms: atShare(0.99) };
}
