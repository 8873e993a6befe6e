// `tulle analyze`: says what is wrong with manifests before they run, or with what runs.
import { Option, type Command } from "commander";
import { analyze, kinds, keyOf, keyText } from "@tulle/config";
import type { Finding, Loaded, MeshResource, Severity } from "@tulle/config";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption, OutputOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { countFindings, distinct, findingRows, renderFindings } from "../printing/print-findings.ts";
import { loadManifests } from "../arguments/resource-arguments.ts";
import { wrapText } from "../printing/wrap-text.ts";

interface AnalyzeCommandOptions extends InstanceOption, OutputOption {
  readonly mesh?: boolean;
  readonly networkMode?: "loopback" | "namespaces";
  readonly failOn: Severity;
}

/** Of what a finding of these misses there may be one in the running instance. */
const missingThings: ReadonlySet<string> = new Set(["IST0101", "IST0127"]);

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command
    .argument("[paths...]", 'files or folders of manifests, "-" for standard input (default: the running instance)')
    .option("--mesh", "together with the resources of the running instance")
    .addOption(
      new Option("--network-mode <mode>", "also tell what this local mode does not carry").choices([
        "loopback",
        "namespaces",
      ]),
    )
    .addOption(
      new Option("--fail-on <severity>", "least severity that makes the exit status 4")
        .choices(["error", "warning", "info"])
        .default("error"),
    );
  addExamples(command, [
    ["tulle analyze samples/shop", "check a folder"],
    ["tulle analyze rule.yaml --mesh", "check a file against what runs"],
  ]);
  command.action((paths: readonly string[], options: AnalyzeCommandOptions) => run(paths, options, context));
}

async function run(paths: readonly string[], options: AnalyzeCommandOptions, context: CommandContext): Promise<void> {
  const findings = distinct(
    paths.length === 0 ? await liveFindings(options, context) : await fileFindings(paths, options, context),
  );
  const subject = paths.length === 0 ? "the running instance" : paths.join(", ");
  await context.printData(findingRows(findings), options.output, () =>
    findings.length === 0
      ? `${wrapText(`✔ No validation issues found when analyzing ${subject}.`, context.columns, "  ")}\n`
      : `${renderFindings(findings, context)}\n${wrapText(`${countFindings(findings)} in ${subject}`, context.columns)}\n`,
  );
  const isAlone = paths.length > 0 && options.mesh !== true && options.output === undefined;
  if (isAlone && findings.some(({ code }) => missingThings.has(code))) {
    const text = "These files alone were looked at; --mesh adds what runs.";
    context.stderr(`${wrapText(text, context.columns)}\n`);
  }
  const failing: readonly Severity[] =
    options.failOn === "error"
      ? ["error"]
      : options.failOn === "warning"
        ? ["error", "warning"]
        : ["error", "warning", "info"];
  if (findings.some(({ severity }) => failing.includes(severity))) {
    throw new CommandFailure("", { exitCode: exitCodes.findings });
  }
}

async function liveFindings(options: AnalyzeCommandOptions, context: CommandContext): Promise<readonly Finding[]> {
  const instance = await context.instance(options);
  const client = connect(instance);
  return withApiFailures(instance, () => client.findings());
}

async function fileFindings(
  paths: readonly string[],
  options: AnalyzeCommandOptions,
  context: CommandContext,
): Promise<readonly Finding[]> {
  const loaded = await loadManifests(paths, context);
  const resources = options.mesh === true ? await withLive(loaded, options, context) : loaded.resources;
  const { networkMode } = options;
  const { drafts } = loaded;
  const found = analyze(resources, { drafts, ...(networkMode === undefined ? {} : { networkMode }) });
  // What is wrong elsewhere in the mesh is not what was asked.
  const own = new Set([...loaded.resources, ...drafts].map((resource) => keyText(keyOf(resource))));
  return [...loaded.findings, ...found.filter(({ resource }) => resource === undefined || own.has(keyText(resource)))];
}

/** The resources of the running instance with those of the files in their place. */
async function withLive(
  loaded: Loaded,
  options: InstanceOption,
  context: CommandContext,
): Promise<readonly MeshResource[]> {
  const instance = await context.instance(options);
  const client = connect(instance);
  const lists = await withApiFailures(instance, () => Promise.all(kinds.map((kind) => client.list(kind))));
  const all = new Map<string, MeshResource>();
  for (const resource of [...lists.flatMap(({ items }) => items), ...loaded.resources]) {
    all.set(keyText(keyOf(resource)), resource);
  }
  // The files say something else of these, whatever it is.
  for (const draft of loaded.drafts) all.delete(keyText(keyOf(draft)));
  return [...all.values()];
}
