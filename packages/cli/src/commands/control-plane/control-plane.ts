// `tulle control-plane`: the control plane as a process of its own. `tulle up` starts one; so does whoever runs Envoy
// elsewhere, and a pod of a cluster.
import path from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import { giveBackAtRest } from "@tulle/capture/rest";
import { parseClusterRanges } from "@tulle/capture/services";
import { runManifestControlPlane } from "@tulle/control-plane";
import { isLogLevel, Logging, logLevels, type LogLevel } from "@tulle/telemetry";
import { holderText } from "@tulle/local/port-holder";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import {
  type Address,
  addExamples,
  hostPort,
  joinAddressOption,
  joinAdvertiseOption,
  machineGraceOption,
  optionName,
  workloadCertTtlOption,
} from "../../command/command-options.ts";
import { tulleVersion } from "../../command/installation.ts";

interface Options {
  readonly manifests?: string;
  readonly state: string;
  /** False with --no-xds. */
  readonly xds: Address | false;
  readonly xdsTls?: Address;
  readonly joinAddress?: Address;
  readonly joinAdvertise?: readonly string[];
  readonly machineGrace?: number;
  readonly trustDomain: string;
  readonly workloadTls: "1.2" | "1.3";
  readonly cacerts?: string;
  readonly workloadCertTtl: number;
  readonly http: Address;
  readonly fresh?: boolean;
  readonly clusterId: string;
  readonly owner?: string;
  readonly serviceClusterIpRange?: readonly string[];
  readonly networkMode?: "loopback" | "namespaces";
  readonly kubernetes?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly revision: string;
  readonly istioResources?: boolean;
  readonly webhook?: Address;
  readonly logLevel: LogLevel;
}

function addressOption(name: string, purpose: string, port: number): Option {
  const fallback: Address = { host: "127.0.0.1", port };
  const option = new Option(`${name} <host:port>`, purpose).argParser(hostPort);
  return option.default(fallback, `${fallback.host}:${port}`);
}

export function register(command: Command, context: CommandContext): void {
  command
    .option("--manifests <folder>", "folder of manifests to serve and to watch (its sub-folders are not read)")
    .option("--state <folder>", "where applied resources, the token and the API's socket lie", ".tulle")
    .addOption(addressOption("--xds", "where proxies connect without TLS", 15_010))
    .option("--no-xds", "serve none without TLS")
    .addOption(
      new Option(
        "--xds-tls <host:port>",
        "where proxies connect with certificates, and get them: 15012 by custom; the mesh's authority comes with it",
      ).argParser(hostPort),
    )
    .addOption(joinAddressOption())
    .addOption(joinAdvertiseOption())
    .addOption(machineGraceOption())
    .option("--trust-domain <name>", "who the authority's certificates vouch for", "cluster.local")
    .addOption(
      new Option("--workload-tls <version>", "lowest version of TLS between workloads")
        .choices(["1.2", "1.3"])
        .default("1.3"),
    )
    .option(
      "--cacerts <folder>",
      "an authority of your own: ca-cert.pem, ca-key.pem, root-cert.pem, cert-chain.pem (cacerts in the state folder, where there is one)",
    )
    .addOption(workloadCertTtlOption().default(24 * 3_600_000, "24h"))
    .addOption(addressOption("--http", "where the HTTP API listens", 15_014))
    .option("--fresh", "forget what 'tulle apply' brought in earlier runs")
    .option("--cluster-id <name>", "CLUSTER in status listings and metrics", "local")
    .option(
      "--owner <id>",
      "who runs the pods: those of another owner are forgotten, and --fresh holds once for an owner",
    )
    .addOption(
      new Option(
        "--service-cluster-ip-range <ranges>",
        "range of each family, such as 10.96.0.0/16,fd00:10:96::/112, of which Services that name no address get one (default: they get none)",
      ).argParser(clusterRanges),
    )
    .addOption(
      new Option("--network-mode <mode>", "how pods reach each other, which decides on some findings")
        .choices(["loopback", "namespaces"])
        .default("loopback"),
    )
    .option("--kubernetes", "in a cluster: its API server is the store, and keeps what is to be kept")
    .option("--kubeconfig <file>", "how the cluster is reached (default: the pod's own account, else kubectl's)")
    .option("--context <name>", "which of the kubeconfig's clusters")
    .option("--revision <name>", "of several control planes of a cluster, which one this is", "default")
    .option("--istio-resources", "follow resources of Istio's groups, too; Tulle's win where both hold a name")
    .addOption(
      new Option(
        "--webhook <host:port>",
        "where API servers ask for pods and resources (default: all addresses, port 15017)",
      ).argParser(hostPort),
    )
    .option("--log-level <level>", logLevels.join(", "), logLevel, "info");
  addExamples(command, [
    ["tulle control-plane --manifests samples/shop", "serve a folder to proxies that are started elsewhere"],
    ["tulle control-plane --kubernetes --context dev", "serve a cluster, from outside of it"],
  ]);
  command.action(async (options: Options) => {
    // Before anything is served: whoever sees it serve may end it at once.
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
    process.once("SIGTERM", () => stop());
    process.once("SIGINT", () => stop());
    const starting = options.kubernetes === true ? startOnCluster : startOverManifests;
    const running = await starting(options, command, context, stopped).catch(async (error: NodeJS.ErrnoException) => {
      throw await startFailure(error);
    });
    void giveBackAtRest();
    await stopped;
    await running?.close();
  });
}

/** What both platforms take alike. */
function sharedOptions(options: Options, context: CommandContext) {
  return {
    ...(options.joinAddress === undefined ? {} : { joinAddress: inherited(options.joinAddress, context) }),
    ...(options.joinAdvertise === undefined ? {} : { joinAdvertise: () => options.joinAdvertise! }),
    ...(options.machineGrace === undefined ? {} : { machineGraceMs: options.machineGrace }),
    trustDomain: options.trustDomain,
    minimumTls: options.workloadTls === "1.2" ? "TLSV1_2" : "TLSV1_3",
    workloadTtlMs: options.workloadCertTtl,
    version: tulleVersion(),
    environment: context.env,
    logging: new Logging({ level: options.logLevel }),
  } as const;
}

function startOverManifests(
  options: Options,
  _command: Command,
  context: CommandContext,
): Promise<{ close(): Promise<void> }> {
  const manifests = options.manifests === undefined ? undefined : path.resolve(context.cwd, options.manifests);
  return runManifestControlPlane({
    ...sharedOptions(options, context),
    ...(manifests === undefined ? {} : { directory: manifests }),
    stateDirectory: path.resolve(context.cwd, options.state),
    ...(options.xds === false ? {} : { xdsAddress: options.xds }),
    ...(options.xdsTls === undefined ? {} : { xdsTlsAddress: options.xdsTls }),
    ...(options.cacerts === undefined ? {} : { cacertsDirectory: path.resolve(context.cwd, options.cacerts) }),
    httpAddress: options.http,
    fresh: options.fresh ?? false,
    clusterId: options.clusterId,
    runtimeOwner: options.owner ?? "",
    ...(options.serviceClusterIpRange === undefined ? {} : { clusterRanges: options.serviceClusterIpRange }),
    networkMode: options.networkMode ?? "loopback",
  });
}

/** Undefined where it was stopped while it waited for the cluster. */
async function startOnCluster(
  options: Options,
  command: Command,
  context: CommandContext,
  stopped: Promise<void>,
): Promise<{ close(): Promise<void> } | undefined> {
  const isGiven = (name: string): boolean => command.getOptionValueSource(name) === "cli";
  const foreign = ["manifests", "cacerts", "fresh", "owner", "serviceClusterIpRange", "networkMode"];
  const misplaced = foreign.find(isGiven);
  if (misplaced !== undefined) throw new Error(`--${optionName(misplaced)} does not go with --kubernetes`);
  const { runClusterControlPlane } = await import("./on-cluster.ts");
  const givenUp = new AbortController();
  void stopped.then(() => givenUp.abort());
  try {
    return await runClusterControlPlane(
      {
        ...sharedOptions(options, context),
        ...(options.kubeconfig === undefined ? {} : { kubeconfig: path.resolve(context.cwd, options.kubeconfig) }),
        ...(options.context === undefined ? {} : { context: options.context }),
        revision: options.revision,
        withIstioGroups: options.istioResources ?? false,
        stateDirectory: path.resolve(context.cwd, options.state),
        // Nobody proves anything there.
        ...(isGiven("xds") && options.xds !== false ? { xdsAddress: options.xds } : {}),
        ...(options.xdsTls === undefined ? {} : { xdsTlsAddress: options.xdsTls }),
        ...(options.webhook === undefined ? {} : { webhookAddress: options.webhook }),
        ...(isGiven("http") ? { httpAddress: options.http } : {}),
        clusterId: isGiven("clusterId") ? options.clusterId : "Kubernetes",
      },
      givenUp.signal,
    );
  } catch (error) {
    if (givenUp.signal.aborted) return undefined;
    throw error;
  }
}

/** Where its pods have networks of their own, `tulle up` has bound the port in the machine's. */
function inherited(address: Address, { env }: CommandContext): Address & { readonly descriptor?: number } {
  const found = new RegExp(`(?:^|,)${address.port}=(\\d+)(?:,|$)`).exec(env["TULLE_LISTEN_FDS"] ?? "");
  return found === null ? address : { ...address, descriptor: Number(found[1]) };
}

async function startFailure(error: NodeJS.ErrnoException): Promise<CommandFailure> {
  if (error.code === "EADDRINUSE" || /EADDRINUSE|No address added/.test(error.message)) {
    const [, host = "", port = ""] = /address already in use (\S+):(\d+)/.exec(error.message) ?? [];
    const taken = port === "" ? error.message : `${host}:${port} is in use${holderText(host, Number(port))}`;
    // In one line: a supervisor tells the last one.
    return new CommandFailure(
      `an address is taken: ${taken}; have that program ended, or choose others with --xds, --xds-tls, --join-address and --http`,
      { cause: error },
    );
  }
  return new CommandFailure(`the control plane cannot start: ${error.message}`, { cause: error });
}

function clusterRanges(text: string): readonly string[] {
  const ranges = parseClusterRanges(text);
  if (ranges === undefined) {
    throw new InvalidArgumentError(
      "It must be one range, or one of each family, of 16 to 1,048,576 addresses: 10.96.0.0/16,fd00:10:96::/112.",
    );
  }
  return ranges;
}

function logLevel(text: string): LogLevel {
  if (!isLogLevel(text)) throw new InvalidArgumentError(`It must be one of ${logLevels.join(", ")}.`);
  return text;
}
