// `tulle logs`: what a pod's processes wrote, from the files in the state directory.
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { type Instance, isOwnFolder, NotOwn, stateFolderName } from "@tulle/local/instance";
import { choosePod, type NamedPod, podArgumentText, podsNamed } from "../arguments/choose-pod.ts";
import { CommandFailure } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { requireHere } from "../instance/control-plane-elsewhere.ts";
import { addExamples, addInstanceOption, wholeNumber } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { type ClusterInstance, isOnCluster } from "../instance/on-cluster.ts";

interface LogsOptions extends InstanceOption {
  readonly container?: string;
  readonly namespace?: string;
  readonly follow?: boolean;
  readonly tail?: number;
}

/** Processes of the instance itself, which belong to no pod. */
const instanceLogs = ["control-plane", "supervisor"];
const followIntervalMs = 200;
const chunkBytes = 64 * 1024;

export function register(command: Command, context: CommandContext): void {
  command.argument("<pod>", `${podArgumentText}; or one of: ${instanceLogs.join(", ")}`);
  addInstanceOption(command);
  command.option("-n, --namespace <namespace>", "namespace of the pod");
  command.option("-c, --container <name>", "app, proxy, or a further container's name (default: app, else proxy)");
  command.option("-f, --follow", "go on as more is written, until Ctrl-C");
  command.option("--tail <lines>", "only the last lines", wholeNumber(0));
  addExamples(command, [
    ["tulle logs catalog-v1", "what the app wrote"],
    ["tulle logs tulle-ingressgateway -c proxy -f", "the gateway's access log as it grows"],
  ]);
  command.action(async (pod: string, options: LogsOptions) => {
    const cluster = await clusterOf(options, context);
    if (cluster !== undefined) return showOnCluster(cluster, pod, options, context);
    const file = await logFile(pod, options, context);
    await show(file, options, context);
  });
}

/** Undefined where the instance is one of this machine, or there is none. */
async function clusterOf(options: LogsOptions, context: CommandContext): Promise<ClusterInstance | undefined> {
  const instance = await context.instance(options).catch((error: unknown) => {
    if (options.context !== undefined || options.kubeconfig !== undefined) throw error;
    return undefined;
  });
  return instance !== undefined && isOnCluster(instance) ? instance : undefined;
}

async function showOnCluster(
  instance: ClusterInstance,
  text: string,
  { namespace, container, follow, tail }: LogsOptions,
  context: CommandContext,
): Promise<void> {
  const { items } = await withApiFailures(instance, () => connect(instance).list("Pod"));
  const named = items.map((pod) => ({ pod, name: pod.metadata.name, namespace: pod.metadata.namespace }));
  const isControlPlane = text === "control-plane";
  const { pod } = choosePod(
    isControlPlane ? named.filter((each) => each.pod.metadata.labels?.["app"] === "tulled").slice(0, 1) : named,
    isControlPlane ? { text: "tulled" } : { text, namespace },
    context,
  );
  const proxy = "tulle-proxy";
  const wanted = container === "proxy" ? proxy : container === "app" ? undefined : container;
  // A gateway has nothing but its proxy.
  const [first] = pod.spec.containers.map(({ name }) => name).filter((name) => name !== proxy);
  const lines = await instance.log({
    namespace: pod.metadata.namespace,
    pod: pod.metadata.name,
    container: wanted ?? first ?? proxy,
    ...(follow === undefined ? {} : { follow }),
    ...(tail === undefined ? {} : { tailLines: tail }),
  });
  const decoder = new TextDecoder();
  for await (const chunk of lines as AsyncIterable<Buffer>) context.stdout(decoder.decode(chunk, { stream: true }));
}

/** The chosen instance; none where nothing runs any more in a named folder, whose logs are then needed most. */
async function findInstance(options: InstanceOption, context: CommandContext): Promise<Instance | string> {
  try {
    const instance = await context.instance(options);
    requireHere(instance);
    return instance;
  } catch (error) {
    const named = options.dir ?? context.env["TULLE_DIR"];
    const state = path.resolve(context.cwd, named ?? ".", stateFolderName);
    if (isOwn(state) && existsSync(path.join(state, "logs"))) return state;
    throw error;
  }
}

function isOwn(folder: string): boolean {
  try {
    return isOwnFolder(folder);
  } catch (error) {
    if (error instanceof NotOwn) return false; // told already
    throw error;
  }
}

async function logFile(text: string, options: LogsOptions, context: CommandContext): Promise<string> {
  const instance = await findInstance(options, context);
  const folder = path.join(typeof instance === "string" ? instance : instance.stateDir, "logs");
  if (instanceLogs.includes(text)) return path.join(folder, `${text}.log`);
  const live = typeof instance === "string" ? [] : await livePods(instance);
  const { name } = choosePod(await withLogs(folder, live, text, options), { text, ...options }, context);
  const logs = (await readdir(path.join(folder, name)))
    .filter((file) => file.endsWith(".log"))
    .map((file) => file.slice(0, -".log".length));
  const wanted = options.container ?? (logs.includes("app") ? "app" : "proxy");
  if (logs.includes(wanted)) return path.join(folder, name, `${wanted}.log`);
  throw new CommandFailure(`${name} has no log "${wanted}"`, { hint: `It has: ${logs.join(", ")}` });
}

/** Those that run before those that have left: a name's beginning means a pod of today, where there is one. */
async function withLogs(
  folder: string,
  live: readonly NamedPod[],
  text: string,
  { namespace }: LogsOptions,
): Promise<readonly NamedPod[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const running = live.filter(({ name }) => names.includes(name));
  if (podsNamed(running, { text, namespace }).length > 0) return running;
  const known = new Map(live.map((pod) => [pod.name, pod]));
  return names.map((name) => known.get(name) ?? { name, namespace: undefined });
}

/** Logs are there without a control plane too. */
async function livePods(instance: Instance): Promise<readonly NamedPod[]> {
  try {
    const { items } = await connect(instance).list("Pod");
    return items.map(({ metadata: { name, namespace } }) => ({ name, namespace }));
  } catch {
    return [];
  }
}

async function show(file: string, options: LogsOptions, context: CommandContext): Promise<void> {
  const descriptor = openSync(file, "r");
  try {
    let offset = options.tail === undefined ? 0 : startOfTail(descriptor, options.tail);
    offset = copy(descriptor, offset, context);
    while (options.follow === true) {
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, followIntervalMs);
      await promise;
      // A log that was cut begins anew.
      if (fstatSync(descriptor).size < offset) offset = 0;
      offset = copy(descriptor, offset, context);
    }
  } finally {
    closeSync(descriptor);
  }
}

/** Prints from `offset` to the present end and answers where that was. */
function copy(descriptor: number, offset: number, context: CommandContext): number {
  const buffer = Buffer.alloc(chunkBytes);
  const decoder = new TextDecoder();
  let at = offset;
  for (;;) {
    const bytes = readSync(descriptor, buffer, 0, chunkBytes, at);
    if (bytes === 0) break;
    at += bytes;
    context.stdout(decoder.decode(buffer.subarray(0, bytes), { stream: true }));
  }
  return at;
}

/** Where the last `lines` lines begin, read backwards from the end. */
function startOfTail(descriptor: number, lines: number): number {
  const { size } = fstatSync(descriptor);
  const buffer = Buffer.alloc(chunkBytes);
  let seen = 0;
  for (let end = size; end > 0; end -= chunkBytes) {
    const start = Math.max(0, end - chunkBytes);
    const bytes = readSync(descriptor, buffer, 0, end - start, start);
    for (let index = bytes - 1; index >= 0; index -= 1) {
      // The newline that ends the last line does not begin another one.
      if (buffer[index] !== 10 || start + index === size - 1) continue;
      seen += 1;
      if (seen === lines) return start + index + 1;
    }
  }
  return lines === 0 ? size : 0;
}
