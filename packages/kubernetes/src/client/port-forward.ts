// A connection to a port of a pod, through the API server: WebSocket with the sub-protocol `v4.channel.k8s.io`, in
// which each message begins with the number of its channel, 0 for the connection and 1 for what went wrong with it.
// The first message of each names the port (two bytes) and holds nothing else. No port of this machine is opened,
// which others could take or ask.
import { Duplex } from "node:stream";
import { WebSocket } from "undici";
import type { KubernetesClient } from "./kubernetes-client.ts";
import { reasonOf } from "./socket-failure.ts";

export interface ForwardedPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

const protocol = "v4.channel.k8s.io";
const dataChannel = 0;
/** Of one message: what lies between takes no larger ones. */
const mostMessageBytes = 32 * 1024;
/** Beyond what is on its way, writers wait. */
const mostUnsentBytes = 1024 * 1024;
const unsentPollMs = 5;

/** What is written before the connection is there waits for it. */
export function forwardPort(client: KubernetesClient, target: ForwardedPort): Duplex {
  return new PortForward(client, target);
}

class PortForward extends Duplex {
  readonly #opened = Promise.withResolvers<WebSocket>();
  #socket: WebSocket | undefined;
  /** Channels whose first message has come. */
  readonly #named = new Set<number>();

  constructor(client: KubernetesClient, { namespace, pod, port }: ForwardedPort) {
    super();
    // Whoever waits is told by the stream.
    this.#opened.promise.catch(() => undefined);
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/portforward?ports=${port}`;
    const failed = (why: string): void =>
      void this.destroy(new Error(`no connection to port ${port} of ${pod}.${namespace}: ${why}`));
    client.webSocket(path, [protocol]).then(
      (socket) => {
        if (this.destroyed) return socket.close();
        this.#socket = socket;
        socket.binaryType = "arraybuffer";
        socket.addEventListener("open", () => this.#opened.resolve(socket));
        socket.addEventListener("message", ({ data }) => this.#take(Buffer.from(data as ArrayBuffer), failed));
        socket.addEventListener("error", (event) => failed(reasonOf(event)));
        socket.addEventListener("close", () => this.push(null));
      },
      (error: unknown) => failed((error as Error).message),
    );
  }

  #take(message: Buffer, failed: (why: string) => void): void {
    const channel = message[0] ?? 0;
    if (!this.#named.has(channel)) {
      this.#named.add(channel);
      return;
    }
    const content = message.subarray(1);
    if (channel === dataChannel) this.push(content);
    else failed(content.toString("utf8").trim());
  }

  override _read(): void {
    // Messages come as they come: the API server has no way to be told to wait.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    void this.#send(chunk, done);
  }

  async #send(chunk: Buffer, done: (error?: Error | null) => void): Promise<void> {
    try {
      const socket = await this.#opened.promise;
      for (let at = 0; at < chunk.length; at += mostMessageBytes) {
        socket.send(Buffer.concat([Buffer.of(dataChannel), chunk.subarray(at, at + mostMessageBytes)]));
      }
      this.#whenSent(socket, done);
    } catch (error) {
      done(error as Error);
    }
  }

  #whenSent(socket: WebSocket, done: () => void): void {
    if (socket.bufferedAmount < mostUnsentBytes || socket.readyState !== WebSocket.OPEN) done();
    else setTimeout(() => this.#whenSent(socket, done), unsentPollMs);
  }

  /** There is no half of a connection to close: it ends as a whole when the other side has answered. */
  override _final(done: () => void): void {
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#opened.reject(error ?? new Error("the connection is closed"));
    this.#socket?.close();
    done(error);
  }

  // What HTTP asks of sockets; time-outs of requests end them by themselves.
  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}
