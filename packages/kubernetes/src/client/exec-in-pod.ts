// A command in a container of a pod, through the API server: WebSocket with the sub-protocol `v5.channel.k8s.io`, in
// which each message begins with the number of its channel. Older servers speak `v4`, which cannot say that the input
// has ended.
import type { Readable, Writable } from "node:stream";
import { WebSocket } from "undici";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { reasonOf } from "./socket-failure.ts";

export interface PodCommand {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
}

export interface CommandStreams {
  readonly input: Readable;
  readonly output: Writable;
  readonly errors: Writable;
  /** The command has a terminal, of this size; `follow` calls back when it changes, and returns how to end that. */
  readonly terminal?: {
    size(): { readonly columns: number; readonly rows: number };
    follow(listener: () => void): () => void;
  };
}

const protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"] as const;
const channel = { input: 0, output: 1, errors: 2, outcome: 3, size: 4, close: 255 } as const;
/** Of one message: what lies between takes no larger ones. */
const mostMessageBytes = 32 * 1024;
/** Beyond what is on its way, the input waits. */
const mostUnsentBytes = 1024 * 1024;
const unsentPollMs = 5;

/** The command's exit status. Rejects where it cannot be run, or the connection breaks. */
export async function execInPod(client: KubernetesClient, which: PodCommand, streams: CommandStreams): Promise<number> {
  const { namespace, pod, container, argv } = which;
  const { input, terminal } = streams;
  const query = new URLSearchParams({ container, stdin: "true", stdout: "true" });
  if (terminal === undefined) query.set("stderr", "true");
  else query.set("tty", "true");
  for (const word of argv) query.append("command", word);
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec?${query.toString()}`;
  const socket = await client.webSocket(path, protocols);
  socket.binaryType = "arraybuffer";
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const ends: (() => void)[] = [];
  socket.addEventListener("open", () => {
    ends.push(sendInput(socket, input));
    if (terminal === undefined) return;
    const tell = (): void => {
      const { columns, rows } = terminal.size();
      send(socket, channel.size, Buffer.from(JSON.stringify({ Width: columns, Height: rows })));
    };
    ends.push(terminal.follow(tell));
    tell();
  });
  socket.addEventListener("message", ({ data }) => {
    const message = Buffer.from(data as ArrayBuffer);
    const content = message.subarray(1);
    if (message[0] === channel.output) streams.output.write(content);
    else if (message[0] === channel.errors) streams.errors.write(content);
    else if (message[0] === channel.outcome) {
      const outcome = outcomeOf(content.toString("utf8"));
      if (typeof outcome === "number") resolve(outcome);
      else reject(new Error(outcome));
    }
  });
  const where = `${container} of ${pod}.${namespace}`;
  socket.addEventListener("error", (event) => reject(new Error(`no way into ${where}: ${reasonOf(event)}`)));
  socket.addEventListener("close", () => reject(new Error(`the connection to ${where} has ended`)));
  try {
    return await promise;
  } finally {
    for (const end of ends) end();
    socket.close();
  }
}

/** Returns how to end it. */
function sendInput(socket: WebSocket, input: Readable): () => void {
  let timer: NodeJS.Timeout | undefined;
  const goOn = (): void => {
    if (socket.bufferedAmount < mostUnsentBytes || socket.readyState !== WebSocket.OPEN) input.resume();
    else timer = setTimeout(goOn, unsentPollMs);
  };
  const onData = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length; at += mostMessageBytes) {
      send(socket, channel.input, chunk.subarray(at, at + mostMessageBytes));
    }
    if (socket.bufferedAmount < mostUnsentBytes) return;
    input.pause();
    goOn();
  };
  const onEnd = (): void => {
    if (socket.protocol === protocols[0]) send(socket, channel.close, Buffer.of(channel.input));
  };
  input.on("data", onData);
  input.once("end", onEnd);
  return () => {
    clearTimeout(timer);
    input.off("data", onData);
    input.off("end", onEnd);
    input.pause();
  };
}

function send(socket: WebSocket, number: number, content: Uint8Array): void {
  if (socket.readyState === WebSocket.OPEN) socket.send(Buffer.concat([Buffer.of(number), content]));
}

interface Outcome {
  readonly status?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** The exit status, or why there is none (k8s.io/apimachinery, remotecommand: a Status). */
export function outcomeOf(text: string): number | string {
  let outcome: Outcome;
  try {
    outcome = JSON.parse(text) as Outcome;
  } catch {
    return text.trim();
  }
  if (outcome.status === "Success") return 0;
  const cause = outcome.details?.causes?.find(({ reason }) => reason === "ExitCode");
  const code = Number(cause?.message);
  if (outcome.reason === "NonZeroExitCode" && Number.isInteger(code)) return code;
  return outcome.message ?? "it could not be run";
}
