// The admin interface of one pod's proxy, as the sub-commands of `proxy-config` reach it.
import type { Duplex } from "node:stream";
import type { Command } from "commander";
import { ApiClient, ApiError, type Pod } from "@tulle/config";
import { choosePod, podArgumentText } from "../arguments/choose-pod.ts";
import { CommandFailure } from "../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../command/command-module.ts";
import { addInstanceOption } from "../command/command-options.ts";
import type { Instance } from "@tulle/local/instance";
import { enterPod } from "../instance/enter-pod.ts";
import { isOnCluster } from "../instance/on-cluster.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { connectWithin } from "./connect-within.ts";

const adminPort = 15_000;
const maxAnswerCharacters = 256 * 1024 * 1024;

export interface PodOptions extends InstanceOption {
  readonly namespace?: string;
}

export interface ProxyAdmin {
  /** `<pod>.<namespace>` */
  readonly id: string;
  /** The body of the answer. @throws {CommandFailure} when the proxy does not answer, or not with 200 */
  request(method: "GET" | "POST", path: string): Promise<string>;
}

/** Arguments and options that say which proxy is meant. */
export function addPodArgument(command: Command): Command {
  addInstanceOption(command);
  return command.argument("<pod>", podArgumentText).option("-n, --namespace <namespace>", "namespace of the pod");
}

/** @throws {CommandFailure} when there is no such pod, or more than one */
export async function proxyAdmin(context: CommandContext, name: string, options: PodOptions): Promise<ProxyAdmin> {
  const instance = await context.instance(options);
  const client = connect(instance);
  const { items } = await withApiFailures(instance, () => client.list("Pod"));
  return proxyAdminOf(podOf(items, name, options, context), instance, context);
}

/** @throws {CommandFailure} when the pod has no address yet */
export async function proxyAdminOf(
  pod: Pod,
  instance: Instance,
  context: Pick<CommandContext, "env">,
): Promise<ProxyAdmin> {
  const id = `${pod.metadata.name}.${pod.metadata.namespace}`;
  const address = pod.status?.podIP;
  if (address === undefined) throw new CommandFailure(`pod ${id} has no address yet`);
  const connectTo = await wayTo(pod, instance, context);
  const host = connectTo === undefined ? (address.includes(":") ? `[${address}]` : address) : "localhost";
  return {
    id,
    request: (method, path) =>
      getText({ url: `http://${host}:${adminPort}`, ...(connectTo && { connect: connectTo }) }, path, method).catch(
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          throw new CommandFailure(
            error.status === 0 ? `the proxy of ${id} does not answer at ${host}:${adminPort}` : error.message,
            { cause: error },
          );
        },
      ),
  };
}

/** Into the pod's own network, where its proxy's pages are at localhost alone; undefined where they are at its
 * address. */
async function wayTo(
  { metadata: { name, namespace } }: Pod,
  instance: Instance,
  context: Pick<CommandContext, "env">,
): Promise<(() => Duplex) | undefined> {
  if (isOnCluster(instance)) return () => instance.connectTo({ pod: name, namespace, port: adminPort });
  if (instance.mode !== "namespaces") return undefined;
  const { enterNetwork } = await enterPod(instance, { pod: name, namespace, container: "proxy" }, context);
  return () => connectWithin(enterNetwork, adminPort);
}

/** The one of `pods` that is meant. @throws {CommandFailure} */
export function podOf(
  pods: readonly Pod[],
  text: string,
  { namespace }: PodOptions,
  context: Pick<CommandContext, "stderr">,
): Pod {
  const named = pods.map((pod) => {
    const { name, namespace: within, deletionTimestamp } = pod.metadata;
    return { pod, name, namespace: within, isLeaving: deletionTimestamp !== undefined };
  });
  return choosePod(named, { text, namespace }, context).pod;
}

/** One request and its whole answer. @throws {ApiError} with what the server said */
async function getText(
  endpoint: { readonly url: string; readonly connect?: () => Duplex },
  path: string,
  method: "GET" | "POST" = "GET",
): Promise<string> {
  const response = await new ApiClient({ endpoint }).open(method, path);
  let text = "";
  response.setEncoding("utf8");
  for await (const chunk of response as AsyncIterable<string>) {
    text += chunk;
    if (text.length > maxAnswerCharacters) throw new ApiError(0, `the answer to ${path} is too long`);
  }
  const status = response.statusCode ?? 0;
  if (status !== 200)
    throw new ApiError(status, text.trim() === "" ? `${path} was answered with ${status}` : text.trim());
  return text;
}
