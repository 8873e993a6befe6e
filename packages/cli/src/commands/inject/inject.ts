// `tulle inject`: manifests with their proxies, where no webhook is to make them, and to see what it would do.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { type MeshConfig, readMeshConfig } from "@tulle/config";
import {
  defaultValues,
  type InjectedText,
  type InjectedWorkload,
  type InjectionValues,
  injectText,
  isFields,
  namespacesOf,
  readValues,
} from "@tulle/kubernetes";
import { parse } from "yaml";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { tulleVersion } from "../../command/installation.ts";
import { renderFindings } from "../../printing/print-findings.ts";
import { wrapText } from "../../printing/wrap-text.ts";
import { type ManifestFile, type ManifestFiles, readManifestFiles } from "./manifest-files.ts";

interface InjectOptions {
  readonly filename: readonly string[];
  readonly output?: string;
  readonly namespace: string;
  readonly revision?: string;
  readonly valuesFile?: string;
  readonly meshConfigFile?: string;
}

export function register(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --filename <path...>", 'files or folders of manifests (YAML or JSON), "-" for standard input')
    .option("-o, --output <path>", "write there: a file, or a folder for several (default: standard output)")
    .option("-n, --namespace <namespace>", "namespace of objects that name none", "default")
    .option("--revision <name>", "which control plane the proxies belong to")
    .option("--values-file <file>", "the injector's values, in YAML or JSON")
    .option("--mesh-config-file <file>", "the mesh's configuration, in YAML");
  addExamples(command, [
    ["tulle inject -f app.yaml | kubectl apply -f -", "apply an application with its proxies"],
    ["tulle inject -f manifests -o injected", "a folder"],
  ]);
  command.addHelpText(
    "after",
    "\nAll else of the files stays byte for byte. What is not injected is told on standard error, with the reason." +
      "\nExit status: 0 done, 4 a file cannot be read or a pod is refused (then nothing is written).",
  );
  command.action((options: InjectOptions) => run(options, context));
}

async function run(options: InjectOptions, context: CommandContext): Promise<void> {
  const values = await valuesOf(options, context);
  const mesh = await meshOf(options, context);
  const inputs = await readManifestFiles(options.filename, context);
  const namespaceLabels = new Map(inputs.files.flatMap(({ text }) => [...namespacesOf(text)]));
  const made = inputs.files.map((file) => ({
    file,
    injected: injectText(file.text, file.name, { mesh, values, namespace: options.namespace, namespaceLabels }),
  }));
  for (const { file, injected } of made) tell(file, injected, context);
  if (made.every(({ injected }) => injected.workloads.length + injected.findings.length === 0))
    context.stderr("There is no pod in what was read.\n");
  const failed = made.filter(({ injected }) => injected.text === undefined).length;
  if (failed > 0) throw new CommandFailure("", { exitCode: exitCodes.findings });
  const texts = made.map(({ file, injected }) => ({ file, text: injected.text ?? "" }));
  await write(texts, inputs, options, context);
}

async function write(
  texts: readonly { readonly file: ManifestFile; readonly text: string }[],
  { isOne }: ManifestFiles,
  { output }: InjectOptions,
  context: CommandContext,
): Promise<void> {
  if (output === undefined) {
    context.stdout(isOne ? texts[0]!.text : texts.map(({ text }) => asDocuments(text)).join(""));
    return;
  }
  const target = path.resolve(context.cwd, output);
  try {
    if (isOne) await writeFile(target, texts[0]!.text);
    else {
      await mkdir(target, { recursive: true });
      const names = texts.map(({ file }) => file.relativeName);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      if (twice !== undefined) throw new Error(`two of the files are called ${twice}`);
      for (const { file, text } of texts) await writeFile(path.join(target, file.relativeName), text);
    }
  } catch (error) {
    throw new CommandFailure(`${output}: ${(error as Error).message}`, { cause: error });
  }
}

/** One file behind another, each with a begin of its own. */
function asDocuments(text: string): string {
  const begun = /^(?:\uFEFF)?---(?:\s|$)/.test(text) ? text : `---\n${text}`;
  return begun.endsWith("\n") ? begun : `${begun}\n`;
}

function tell(file: ManifestFile, { workloads, findings }: InjectedText, context: CommandContext): void {
  const line = (text: string): void => context.stderr(`${wrapText(text, context.columns, "  ")}\n`);
  for (const workload of workloads) {
    const { result } = workload;
    const name = nameOf(workload, file);
    for (const warning of result.warnings) line(`Warning: ${name}: ${warning}`);
    if (result.outcome === "passed") line(`${name} is not injected: ${result.reason}`);
    if (result.outcome === "refused") for (const problem of result.problems) line(`${name} is refused: ${problem}`);
  }
  if (findings.length > 0) context.stderr(renderFindings(findings, context));
}

function nameOf({ kind, namespace, name }: InjectedWorkload, file: ManifestFile): string {
  return `${kind} ${namespace}/${name === "" ? "(no name yet)" : name} in ${file.name}`;
}

async function valuesOf(options: InjectOptions, context: CommandContext): Promise<InjectionValues> {
  const { valuesFile, revision } = options;
  const defaults = defaultValues(tulleVersion(), revision);
  if (valuesFile === undefined) return defaults;
  let content: unknown;
  try {
    content = parse(await readFile(path.resolve(context.cwd, valuesFile), "utf8"));
  } catch (error) {
    throw usage(`${valuesFile}: ${(error as Error).message}`, error);
  }
  const { values, problems } = readValues(
    revision === undefined || !isFields(content) ? content : { ...content, revision },
    defaults,
  );
  if (problems.length > 0) throw usage(problems.map((problem) => `${valuesFile}: ${problem}`).join("\n"));
  return values;
}

async function meshOf({ meshConfigFile: file }: InjectOptions, context: CommandContext): Promise<MeshConfig> {
  if (file === undefined) return {};
  let text: string;
  try {
    text = await readFile(path.resolve(context.cwd, file), "utf8");
  } catch (error) {
    throw usage(`${file}: ${(error as Error).message}`, error);
  }
  const { config, problems } = readMeshConfig(text);
  if (config !== undefined) return config;
  const errors = problems.filter(({ severity }) => severity === "error");
  const lines = errors.map(({ path: place, message }) => [file, place.join("."), message].filter(Boolean).join(": "));
  throw usage(lines.join("\n"));
}

const usage = (message: string, cause?: unknown): CommandFailure =>
  new CommandFailure(message, { exitCode: exitCodes.usage, cause });
