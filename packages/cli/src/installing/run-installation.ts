// `tulle install` and `tulle upgrade`: the same objects, brought into a cluster; they differ in what has to be there.
import { isDeepStrictEqual } from "node:util";
import { InvalidArgumentError, type Command } from "commander";
import {
  controlPlaneName,
  InstallFailure,
  type Installation,
  installObjects,
  type KubernetesClient,
  KubernetesError,
  meshConfigMap,
  objectPath,
  precheck,
  unlessMissing,
} from "@tulle/kubernetes";
import { CommandFailure } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext } from "../command/command-module.ts";
import { addClusterOptions } from "../command/command-options.ts";
import { withCluster } from "../instance/cluster.ts";
import { resultsText } from "./check-results.ts";
import { confirm } from "./confirm.ts";
import {
  addValuesOptions,
  installationOf,
  namespaceOf,
  revisionOf,
  type ValuesOptions,
} from "./installation-options.ts";

export interface InstallOptions extends ValuesOptions, ClusterOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly skipPrecheck?: boolean;
  readonly timeout: number;
}

export function addInstallOptions(command: Command): Command {
  return addClusterOptions(addValuesOptions(command))
    .option("-y, --yes", "do not ask")
    .option("--dry-run", "have the API server check everything, and change nothing")
    .option("--skip-precheck", "do not look first at what may stand in the way")
    .option("--timeout <seconds>", "how long each part may take until it is ready", seconds, 300);
}

function seconds(given: string): number {
  if (!/^\d{1,5}$/.test(given)) throw new InvalidArgumentError("It must be a number of seconds.");
  return Number(given);
}

export async function runInstallation(
  verb: "install" | "upgrade",
  options: InstallOptions,
  context: CommandContext,
): Promise<void> {
  const evaluated = await installationOf(options, context);
  const namespace = namespaceOf(options);
  await withCluster(options, context, async (client) => {
    await requireExpected(verb, client, options);
    const installation = await besideOthers(client, evaluated, options, context);
    if (options.skipPrecheck !== true) await requireGood(client, installation, namespace, context);
    const { server, origin } = client.access;
    const what = verb === "install" ? "Install Tulle into" : "Upgrade Tulle in";
    if (options.dryRun !== true)
      await confirm(`${what} ${server} (${origin}), namespace ${namespace}?`, options, context);
    try {
      await installObjects({
        client,
        namespace,
        objects: installation.objects,
        dryRun: options.dryRun === true,
        timeoutMs: options.timeout * 1000,
        tell: (line) => context.stdout(`${line}\n`),
      });
    } catch (error) {
      if (!(error instanceof InstallFailure)) throw error;
      const hint = "What is there stays; the same command goes on from here, and tulle uninstall takes it away.";
      throw new CommandFailure(error.message, { hint, cause: error });
    }
  });
  const done = verb === "install" ? "installed" : "upgraded";
  context.stdout(options.dryRun === true ? "✔ Nothing was changed.\n" : `✔ Tulle is ${done}.\n`);
}

/** The mesh's configuration is every revision's: one that comes beside others, and says nothing of it, leaves it. */
async function besideOthers(
  client: KubernetesClient,
  installation: Installation,
  options: InstallOptions,
  context: CommandContext,
): Promise<Installation> {
  if (options.revision === undefined || !isDeepStrictEqual(installation.values["base"]?.["meshConfig"], {}))
    return installation;
  const isMeshConfig = ({ kind, metadata }: Installation["objects"][number]): boolean =>
    kind === "ConfigMap" && metadata.name === meshConfigMap.name;
  const path = objectPath("v1", "ConfigMap", namespaceOf(options), meshConfigMap.name);
  const there = await unlessMissing(client.request<{ readonly data?: Readonly<Record<string, string>> }>({ path }));
  const text = there?.data?.[meshConfigMap.key]?.trim() ?? "{}";
  if (text === "{}") return installation;
  context.stdout("The mesh configuration stays as it is: no base.meshConfig is given.\n");
  return { ...installation, objects: installation.objects.filter((object) => !isMeshConfig(object)) };
}

async function requireExpected(
  verb: "install" | "upgrade",
  client: KubernetesClient,
  options: InstallOptions,
): Promise<void> {
  if (verb === "install") return;
  const name = controlPlaneName(revisionOf(options));
  const path = `/apis/apps/v1/namespaces/${encodeURIComponent(namespaceOf(options))}/deployments/${name}`;
  try {
    await client.request({ path });
  } catch (error) {
    if (!(error instanceof KubernetesError) || error.code !== 404) throw error;
    const hint = "tulle install makes a first one.";
    throw new CommandFailure(`there is no control plane ${name} in ${namespaceOf(options)}`, { hint, cause: error });
  }
}

async function requireGood(
  client: KubernetesClient,
  { objects, values }: Installation,
  namespace: string,
  context: CommandContext,
): Promise<void> {
  const results = await precheck({ client, namespace, objects, withIstioLabels: countsIstioLabels(values) });
  const bad = results.filter(({ outcome }) => outcome !== "good");
  if (bad.length > 0) context.stderr(resultsText(bad, context.columns));
  if (bad.every(({ outcome }) => outcome === "warning")) return;
  throw new CommandFailure("the cluster is not ready for Tulle", { hint: "--skip-precheck installs all the same." });
}

export function countsIstioLabels(values: Installation["values"]): boolean {
  const webhook = values["tulled"]?.["sidecarInjectorWebhook"] as { readonly istioLabels: boolean };
  return webhook.istioLabels;
}
