// The program of each node that captures pods: the CNI plug-in asks it over a Unix socket, and waits. A pod that it
// does not answer for does not start.
import { lstatSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import path from "node:path";
import {
  addPassthroughAddress,
  type CaptureOptions,
  installCapture,
  installedRules,
  unixSocketPeerUid,
} from "@tulle/capture";
import { makeOwnFolder } from "@tulle/identity/own";
import type { Logger } from "@tulle/telemetry";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { decideCapture, type SeenPod } from "./decide-capture.ts";
import { openPodNetwork } from "./pod-network.ts";

export const socketName = "cni.sock";

export interface CaptureServerOptions {
  /** Of this user alone; the socket lies in it. */
  readonly folder: string;
  /** Where the runtime's networks of pods are seen. */
  readonly networksFolder: string;
  readonly client: Pick<KubernetesClient, "request">;
  readonly log: Logger;
}

/** As the plug-in writes it (packages/kubernetes/cni/main.go). */
interface PluginRequest {
  readonly command: "ADD" | "CHECK";
  readonly network: string;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
}

const maxRequestCharacters = 16 * 1024;
const requestTimeoutMs = 30_000;

/** @throws where the folder is not this user's alone */
export async function startCaptureServer(options: CaptureServerOptions): Promise<AsyncDisposable> {
  makeOwnFolder(options.folder);
  const socketPath = path.join(options.folder, socketName);
  // Of a run before; nobody else comes into the folder.
  if (lstatSync(socketPath, { throwIfNoEntry: false }) !== undefined) rmSync(socketPath);
  const server = createServer((socket) => void serve(socket, options));
  const listening = Promise.withResolvers<void>();
  server.once("error", listening.reject);
  server.listen(socketPath, listening.resolve);
  await listening.promise;
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      await closed.promise;
    },
  };
}

async function serve(socket: Socket, options: CaptureServerOptions): Promise<void> {
  socket.on("error", () => undefined).setTimeout(requestTimeoutMs, () => socket.destroy());
  const descriptor = (socket as Socket & { readonly _handle?: { readonly fd: number } })._handle?.fd ?? -1;
  if (unixSocketPeerUid(descriptor) !== 0) return void socket.destroy();
  let request: PluginRequest | undefined;
  try {
    request = await readRequest(socket);
    await captureFor(request, options);
    socket.end(`${JSON.stringify({ ok: true })}\n`);
  } catch (error) {
    const { message } = error as Error;
    const { namespace = "", pod = "" } = request ?? {};
    options.log.warning("a pod is not captured, and does not start", { namespace, pod, reason: message });
    socket.end(`${JSON.stringify({ ok: false, error: message })}\n`);
  }
}

async function readRequest(socket: Socket): Promise<PluginRequest> {
  let text = "";
  for await (const part of socket.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    text += part as string;
    if (text.includes("\n")) break;
    if (text.length > maxRequestCharacters) throw new Error("the plug-in asks more than it can");
  }
  const value = JSON.parse(text) as Partial<Record<string, unknown>>;
  const { command, network, namespace, pod, uid } = value;
  const texts = [network, namespace, pod, uid];
  if ((command !== "ADD" && command !== "CHECK") || !texts.every((each) => typeof each === "string")) {
    throw new Error("the plug-in's question is not understood: is it of another version?");
  }
  return value as unknown as PluginRequest;
}

/** @throws {Error} in words for the pod's events */
async function captureFor(request: PluginRequest, options: CaptureServerOptions): Promise<void> {
  const { client, log, networksFolder } = options;
  const { namespace, pod: name } = request;
  const pod = await podOf(request, client);
  const decision = decideCapture(pod);
  if (decision.kind === "refuse") throw new Error(decision.problems.join("; "));
  if (decision.kind === "leave") {
    log.info("a pod is left alone", { namespace, pod: name, reason: decision.reason });
    return;
  }
  using network = openPodNetwork(request.network, networksFolder);
  const within: CaptureOptions = { network };
  if (request.command === "CHECK") {
    if ((await installedRules(within)) === undefined) throw new Error("its network has no rules of capture");
    return;
  }
  await installCapture(decision.plan, within);
  await addPassthroughAddress(within);
  log.info("a pod is captured", { namespace, pod: name });
}

/** The pod that the runtime means, not one of its name that came after it. */
async function podOf({ namespace, pod, uid }: PluginRequest, client: CaptureServerOptions["client"]): Promise<SeenPod> {
  const place = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`;
  let found: SeenPod;
  try {
    found = await client.request<SeenPod>({ path: place });
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    throw new Error(`the API server does not tell what the pod is: ${error.message}`, { cause: error });
  }
  if (uid !== "" && found.metadata.uid !== uid) throw new Error("there is another pod of that name by now");
  return found;
}
