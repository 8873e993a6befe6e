// `tulle up`: runs a folder of manifests on this machine until Ctrl-C.
import { realpathSync, statSync } from "node:fs";
import path from "node:path";
import { giveBackAtRest } from "@tulle/capture/rest";
import { InvalidArgumentError, Option, type Command } from "commander";
import {
  CannotStart,
  enterOwnNetwork,
  FolderInUse,
  parsePortMappings,
  Supervisor,
  type OwnNetwork,
  type PortMapping,
  type ProxyKind,
  type RestartPolicy,
} from "@tulle/local";
import type { Instance } from "@tulle/local/instance";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import {
  type Address,
  addExamples,
  joinAddressOption,
  joinAdvertiseOption,
  machineGraceOption,
  workloadCertTtlOption,
} from "../../command/command-options.ts";
import { compileCacheFolder, entryFile } from "../../command/installation.ts";
import { launcherDescriptors } from "../../command/launcher.ts";
import { UpProgress } from "./up-progress.ts";

interface UpCommandOptions {
  readonly publish?: readonly PortMapping[];
  readonly mode: "loopback" | "namespaces";
  readonly proxy: ProxyKind;
  readonly restart: RestartPolicy;
  readonly fresh?: boolean;
  readonly ownUserOnly?: boolean;
  readonly workloadCertTtl?: number;
  readonly joinAddress?: Address;
  readonly joinAdvertise?: readonly string[];
  readonly machineGrace?: number;
}

export function register(command: Command, context: CommandContext): void {
  command.argument("<folder>", "folder with Kubernetes and mesh manifests (its own files, not its sub-folders)");
  command.addOption(
    new Option("--mode <mode>", "pods at loopback addresses, or each in a network of its own")
      .choices(["loopback", "namespaces"])
      .default("loopback"),
  );
  command.option(
    "--publish <port:target>",
    "port of this machine for a published target port, instead of the one in the manifest",
    collectMappings,
  );
  command.addOption(
    new Option("--proxy <kind>", "proxy of pods that name none").choices(["tulle", "envoy"]).default("tulle"),
  );
  command.addOption(
    new Option("--restart <policy>", "what happens to processes that end")
      .choices(["always", "never"])
      .default("always"),
  );
  command.option("--fresh", "forget what was applied in earlier runs");
  command.option(
    "--own-user-only",
    "keep programs of other users away from every address of the mesh (needs nftables)",
  );
  command.addOption(workloadCertTtlOption());
  command.addOption(joinAddressOption());
  command.addOption(joinAdvertiseOption());
  command.addOption(machineGraceOption());
  addExamples(command, [
    ["tulle up samples/shop", "run the sample shop; Ctrl-C ends it"],
    ["tulle up samples/shop --publish 8081:8080,8444:8443", "on other ports, where 8080 and 8443 are taken"],
    ["tulle up samples/shop --mode namespaces", "with captured connections"],
    ["tulle up samples/shop --proxy envoy", "with Envoy beside each app (TULLE_ENVOY, or envoy on PATH)"],
  ]);
  command.action((folder: string, options: UpCommandOptions) =>
    up(path.resolve(context.cwd, folder), options, context),
  );
}

function collectMappings(text: string, before: readonly PortMapping[] = []): readonly PortMapping[] {
  const mappings = parsePortMappings(text);
  if (typeof mappings === "string") throw new InvalidArgumentError(mappings);
  return [...before, ...mappings];
}

async function up(folder: string, options: UpCommandOptions, context: CommandContext): Promise<void> {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new CommandFailure(`there is no folder ${folder}`, {
      hint: "Name a folder with manifests, such as samples/shop.",
      exitCode: exitCodes.usage,
    });
  }
  // Pods see the way to their own folders, and not all that a link could lead through.
  const dir = options.mode === "namespaces" ? realpathSync(folder) : folder;
  const network = options.mode === "namespaces" ? await ownNetwork(options, context) : undefined;
  const progress = new UpProgress(context, dir);
  const supervisor = await start(dir, options, context, progress, network);
  progress.follow(supervisor);
  const abort = new AbortController();
  const ended = endOnSignals(supervisor, abort, progress);
  try {
    const instance: Instance = await supervisor.ready(abort.signal);
    progress.ready(instance);
    void giveBackAtRest({ signal: abort.signal });
    await ended;
  } catch (error) {
    if (abort.signal.aborted) return ended;
    progress.failed();
    await supervisor.stop();
    const hint =
      error instanceof CannotStart ? asTyped(error.suggestion, context) : `Logs: ${path.join(dir, ".tulle", "logs")}`;
    throw new CommandFailure(error instanceof Error ? error.message : String(error), { hint, cause: error });
  }
}

async function start(
  dir: string,
  options: UpCommandOptions,
  context: CommandContext,
  progress: UpProgress,
  network: OwnNetwork | undefined,
): Promise<Supervisor> {
  try {
    return await Supervisor.start({
      dir,
      ownNetwork: network,
      proxy: options.proxy,
      restart: options.restart,
      publish: options.publish ?? [],
      fresh: options.fresh ?? false,
      ownUserOnly: options.ownUserOnly ?? false,
      controlPlaneOptions: controlPlaneOptions(options),
      joinAddress: options.joinAddress,
      env: context.env,
      tulleCommand: [process.execPath, entryFile],
      tulleCompileCache: compileCacheFolder,
      onEvent: (event) => progress.take(event),
    });
  } catch (error) {
    if (error instanceof CannotStart)
      throw new CommandFailure(error.message, { hint: asTyped(error.suggestion, context), cause: error });
    if (!(error instanceof FolderInUse)) throw error;
    throw new CommandFailure(error.message, { hint: `End it first: tulle down ${dir}`, cause: error });
  }
}

/** Comes back in a network of the instance's own. */
async function ownNetwork({ ownUserOnly }: UpCommandOptions, context: CommandContext): Promise<OwnNetwork> {
  if (ownUserOnly === true) {
    throw new CommandFailure("--own-user-only is for loopback mode: with --mode namespaces nobody else is there", {
      exitCode: exitCodes.usage,
    });
  }
  try {
    return await enterOwnNetwork(context.env, launcherDescriptors());
  } catch (error) {
    if (!(error instanceof CannotStart)) throw error;
    throw new CommandFailure(error.message, { hint: error.suggestion, cause: error });
  }
}

function controlPlaneOptions({
  workloadCertTtl,
  joinAdvertise = [],
  machineGrace,
}: UpCommandOptions): readonly string[] {
  return [
    ...(workloadCertTtl === undefined ? [] : ["--workload-cert-ttl", `${workloadCertTtl / 1000}s`]),
    ...joinAdvertise.flatMap((each) => ["--join-advertise", each]),
    ...(machineGrace === undefined ? [] : ["--machine-grace", `${machineGrace / 1000}s`]),
  ];
}

/** Who typed `npm start` gives options to that. */
function asTyped(suggestion: string, { env }: CommandContext): string {
  return env["npm_lifecycle_event"] === "start"
    ? suggestion.replace("--publish", "npm start -- --publish")
    : suggestion;
}

/** One Ctrl-C may arrive more than once: from the terminal, and handed on by npm or by the launcher. */
const sameSignalMs = 500;

/**
 * The first Ctrl-C (or SIGTERM, or a closed terminal) ends everything in good order, the second at once. Resolves when
 * all of it has ended; rejects with status 130 when it was forced.
 */
function endOnSignals(supervisor: Supervisor, abort: AbortController, progress: UpProgress): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let firstAtMs: number | undefined;
  let isForced = false;
  const onSignal = (): void => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now();
      progress.stopping();
      abort.abort();
      // What is forced ends in good order too, or fails to, and may do so before `destroy` has seen it.
      supervisor.stop().then(
        () => {
          if (isForced) return;
          progress.stopped();
          resolve();
        },
        (error: Error) => {
          if (!isForced) reject(error);
        },
      );
    } else if (!isForced && performance.now() - firstAtMs >= sameSignalMs) {
      isForced = true;
      supervisor
        .destroy()
        .then(() => reject(new CommandFailure("ended by force", { exitCode: exitCodes.interrupted })), reject);
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
  promise.catch(() => undefined);
  return promise;
}
