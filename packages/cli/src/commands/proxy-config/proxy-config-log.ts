// `tulle proxy-config log`: the log levels of a running proxy. A change takes effect at once and lasts until the proxy
// ends.
import { InvalidArgumentError, type Command } from "commander";
import { logLevels } from "@tulle/telemetry";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";

interface LevelChange {
  /** Undefined for all loggers. */
  readonly logger: string | undefined;
  readonly level: string;
}

interface Options extends PodOptions {
  readonly level?: readonly LevelChange[];
  readonly reset?: boolean;
}

export function registerLog(command: Command, context: CommandContext): void {
  addPodArgument(command)
    .option("--level <levels>", `[<logger>:]<level>, separated by commas; levels: ${logLevels.join(", ")}`, parseLevels)
    .option("-r, --reset", "all loggers to warning, as Istio does (proxies of tulle up start with info)");
  addExamples(command, [
    ["tulle proxy-config log catalog-v1", "all loggers and their levels"],
    ["tulle proxy-config log catalog-v1 --level http:debug,router:trace", "change two"],
  ]);
  command.action(async (name: string, options: Options) => {
    const admin = await proxyAdmin(context, name, options);
    const changes = [
      ...(options.reset === true ? [{ logger: undefined, level: "warning" }] : []),
      ...(options.level ?? []),
    ];
    let body = await admin.request("POST", "/logging");
    rejectUnknown(changes, body, admin.id);
    for (const { logger, level } of changes) {
      body = await admin.request("POST", `/logging?${encodeURIComponent(logger ?? "level")}=${level}`);
    }
    context.stdout(`${admin.id}:\n${body}`);
  });
}

/** `listing` is the answer of `/logging`: a line `  <logger>: <level>` for each. */
function rejectUnknown(changes: readonly LevelChange[], listing: string, id: string): void {
  const known = [...listing.matchAll(/^ +([^\s:]+): /gm)].map(([, name]) => name!);
  const unknown = changes.find(({ logger }) => logger !== undefined && !known.includes(logger))?.logger;
  if (unknown === undefined) return;
  throw new CommandFailure(`${id} has no logger "${unknown}"`, {
    hint: `It has: ${known.join(", ")}`,
  });
}

export function parseLevels(text: string): readonly LevelChange[] {
  return text.split(",").map((part) => {
    const colon = part.lastIndexOf(":");
    const level = part.slice(colon + 1);
    const logger = colon < 0 ? undefined : part.slice(0, colon);
    if (!(logLevels as readonly string[]).includes(level)) {
      throw new InvalidArgumentError(`"${level}" is no level; levels are ${logLevels.join(", ")}.`);
    }
    if (logger === "") throw new InvalidArgumentError("There is no logger before the colon.");
    return { logger, level };
  });
}
