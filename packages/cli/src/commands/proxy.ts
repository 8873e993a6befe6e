// `tulle proxy`: a proxy alone, started as `envoy` is: from a bootstrap document, with Envoy's option names.
import { createWriteStream, openSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { giveBackAtRest } from "@tulle/capture/rest";
import type { Command } from "commander";
import { InvalidArgumentError, Option } from "commander";
import type { RunningProxy } from "@tulle/proxy";
import { type LogLevel, type LogSink, isLogLevel, textSink } from "@tulle/telemetry";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";

/** A timer of Node's waits no longer. */
const longestWaitMs = 2 ** 31 - 1;
const flushAfterMs = 5000;

interface ProxyOptions {
  readonly configPath?: string;
  readonly configYaml?: string;
  readonly concurrency?: number;
  readonly logLevel: LogLevel;
  readonly componentLogLevel?: Readonly<Record<string, LogLevel>>;
  readonly logPath?: string;
  readonly serviceNode?: string;
  readonly serviceCluster?: string;
  readonly serviceZone?: string;
  readonly drainTimeS: number;
  readonly mode: "serve" | "validate";
}

export function register(command: Command, context: CommandContext): void {
  command
    .option("-c, --config-path <file>", "bootstrap document, YAML or JSON")
    .option("--config-yaml <yaml>", "bootstrap document as an argument; in place of a file")
    .option("--concurrency <n>", "worker threads (one is what exists)", wholeNumber)
    .option("-l, --log-level <level>", "trace, debug, info, warning, error, critical or off", level, "info")
    .option(
      "--component-log-level <list>",
      "levels of single loggers, such as http:debug,router:trace",
      componentLevels,
    )
    .option("--log-path <file>", "write the log to a file in place of standard error")
    .option("--service-node <id>", "node id, in place of the bootstrap's")
    .option("--service-cluster <name>", "node cluster, in place of the bootstrap's")
    .option("--service-zone <zone>", "zone of the node's locality, in place of the bootstrap's")
    .option("--drain-time-s <seconds>", "how long old connections may go on after a change", wholeNumber, 600)
    .addOption(
      new Option("--mode <mode>", "validate only checks the bootstrap").choices(["serve", "validate"]).default("serve"),
    )
    .addOption(new Option("--base-id <n>", "taken for Envoy's sake").hideHelp())
    .addOption(new Option("--restart-epoch <n>", "taken for Envoy's sake").hideHelp())
    .addOption(new Option("--disable-hot-restart", "taken for Envoy's sake").hideHelp())
    .addOption(new Option("--use-dynamic-base-id", "taken for Envoy's sake").hideHelp());
  addExamples(command, [
    ["tulle proxy -c bootstrap.yaml", "as `envoy -c bootstrap.yaml`"],
    ["tulle proxy -c bootstrap.yaml --mode validate", "check the document and its static resources"],
  ]);
  command.action((options: ProxyOptions) => run(options, context));
}

async function run(options: ProxyOptions, context: CommandContext): Promise<void> {
  if (options.configPath === undefined && options.configYaml === undefined) {
    throw new CommandFailure("a bootstrap document is needed", {
      hint: "Name one: tulle proxy -c bootstrap.yaml",
      exitCode: exitCodes.usage,
    });
  }
  const { BootstrapError, parseBootstrap, readBootstrap, runProxy, validateBootstrap } = await import("@tulle/proxy");
  try {
    const bootstrap =
      options.configYaml === undefined
        ? await readBootstrap(options.configPath!, options)
        : parseBootstrap(options.configYaml, "--config-yaml", options);
    if (options.mode === "validate") {
      for (const warning of validateBootstrap(bootstrap)) context.stdout(`warning: ${warning}\n`);
      context.stdout(`configuration '${options.configPath ?? "--config-yaml"}' OK\n`);
      return;
    }
    // Before anything is served: whoever sees it live may end it at once.
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
    process.once("SIGINT", () => stop());
    process.once("SIGTERM", () => stop());
    const proxy = await runProxy({
      bootstrap,
      logLevel: options.logLevel,
      env: context.env,
      drainTimeMs: options.drainTimeS * 1000,
      ...(options.concurrency !== undefined && { concurrency: options.concurrency }),
      ...(options.componentLogLevel && { componentLogLevels: options.componentLogLevel }),
      ...(options.logPath !== undefined && { logSink: fileSink(options.logPath) }),
      commandLineOptions: {
        concurrency: options.concurrency ?? 1,
        config_path: options.configPath ?? "",
        log_level: options.logLevel,
        drain_time: `${options.drainTimeS}s`,
        mode: "Serve",
      },
    });
    await untilEnded(proxy, stopped);
  } catch (error) {
    if (error instanceof BootstrapError) throw new CommandFailure(error.message, { exitCode: exitCodes.findings });
    throw error;
  }
}

/** Ends the proxy in order on the first signal, at once on the second. */
async function untilEnded(proxy: RunningProxy, stopped: Promise<void>): Promise<void> {
  // Node keeps compiled code when a process ends well; a proxy mostly runs until the machine is shut down.
  const flush = setTimeout(flushCompileCache, flushAfterMs).unref();
  // Without listeners, admin interface and control plane nothing else keeps the process: Envoy runs on then, too.
  const keepAlive = setInterval(() => undefined, longestWaitMs);
  void giveBackAtRest();
  void stopped.then(() => proxy.close());
  await proxy.ended;
  clearTimeout(flush);
  clearInterval(keepAlive);
}

/** @throws {CommandFailure} when the file cannot be opened */
function fileSink(path: string): LogSink {
  let descriptor: number;
  try {
    descriptor = openSync(path, "a");
  } catch (error) {
    throw new CommandFailure(`the log cannot be opened: ${(error as Error).message}`, {
      hint: "Name a file in a folder that exists: --log-path proxy.log",
      cause: error,
    });
  }
  const stream = createWriteStream(path, { fd: descriptor });
  // A full disk takes nothing from the traffic.
  stream.on("error", () => undefined);
  return textSink((line) => stream.write(line));
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("not a whole number");
  return Number(text);
}

function level(text: string): LogLevel {
  // spdlog's short spelling, which Envoy's command line takes too.
  const name = text === "warn" ? "warning" : text;
  if (!isLogLevel(name)) throw new InvalidArgumentError("one of trace, debug, info, warning, error, critical, off");
  return name;
}

function componentLevels(text: string): Readonly<Record<string, LogLevel>> {
  const pairs = text.split(",").map((pair) => pair.split(":"));
  return Object.fromEntries(pairs.map(([name = "", value = ""]) => [name, level(value)]));
}
