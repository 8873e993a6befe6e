// `tulle control-plane`: the control plane as a process of its own. `tulle up` starts one; so does whoever runs Envoy elsewhere.
import path from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { runControlPlane } from "@tulle/control-plane";
import { isLogLevel, Logging, logLevels, type LogLevel } from "@tulle/telemetry";
import { CommandFailure } from "../command-failure.ts";
import type { CommandContext } from "../command-module.ts";
import { addExamples } from "../command-options.ts";
import { tulleVersion } from "./version.ts";

interface Options {
  readonly manifests?: string;
  readonly state: string;
  readonly xds: Address;
  readonly http: Address;
  readonly fresh?: boolean;
  readonly clusterId: string;
  readonly owner?: string;
  readonly logLevel: LogLevel;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

function addressOption(name: string, purpose: string, port: number): Option {
  const fallback: Address = { host: "127.0.0.1", port };
  const option = new Option(`${name} <host:port>`, purpose).argParser(address);
  return option.default(fallback, `${fallback.host}:${port}`);
}

export function register(command: Command, context: CommandContext): void {
  command
    .option("--manifests <folder>", "folder of manifests to serve and to watch (its sub-folders are not read)")
    .option("--state <folder>", "where applied resources, the token and the API's socket lie", ".tulle")
    .addOption(addressOption("--xds", "where proxies connect", 15_010))
    .addOption(addressOption("--http", "where the HTTP API listens", 15_014))
    .option("--fresh", "forget what 'tulle apply' brought in earlier runs")
    .option("--cluster-id <name>", "CLUSTER in status listings and metrics", "local")
    .option(
      "--owner <id>",
      "who runs the pods: those of another owner are forgotten, and --fresh holds once for an owner",
    )
    .option("--log-level <level>", logLevels.join(", "), logLevel, "info");
  addExamples(command, [
    ["tulle control-plane --manifests samples/shop", "serve a folder to proxies that are started elsewhere"],
  ]);
  command.action(async (options: Options) => {
    const manifests = options.manifests === undefined ? undefined : path.resolve(context.cwd, options.manifests);
    // Before anything is served: whoever sees it serve may end it at once.
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
    process.once("SIGTERM", () => stop());
    process.once("SIGINT", () => stop());
    const running = await runControlPlane({
      ...(manifests === undefined ? {} : { directory: manifests }),
      stateDirectory: path.resolve(context.cwd, options.state),
      xdsAddress: options.xds,
      httpAddress: options.http,
      fresh: options.fresh ?? false,
      clusterId: options.clusterId,
      runtimeOwner: options.owner ?? "",
      version: tulleVersion(),
      logging: new Logging({ level: options.logLevel }),
    }).catch((error: NodeJS.ErrnoException) => {
      throw startFailure(error);
    });
    await stopped;
    await running.close();
  });
}

function startFailure(error: NodeJS.ErrnoException): CommandFailure {
  if (error.code === "EADDRINUSE" || /EADDRINUSE|No address added/.test(error.message)) {
    return new CommandFailure(`an address is taken: ${error.message}`, {
      hint: "Another control plane may run there: choose others with --xds and --http.",
      cause: error,
    });
  }
  return new CommandFailure(`the control plane cannot start: ${error.message}`, { cause: error });
}

function address(text: string): Address {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+)):(?<port>\d{1,5})$/.exec(text);
  const host = match?.groups?.["v6"] ?? match?.groups?.["v4"];
  const port = Number(match?.groups?.["port"]);
  if (host === undefined || port > 65_535) throw new InvalidArgumentError("It must be <host>:<port>.");
  return { host, port };
}

function logLevel(text: string): LogLevel {
  if (!isLogLevel(text)) throw new InvalidArgumentError(`It must be one of ${logLevels.join(", ")}.`);
  return text;
}
