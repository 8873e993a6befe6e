// One call of each kind that the soak test makes, with a random body whose hash has to come back. A call may be given
// up half-way, and its answer read slowly; both are what the call itself decides.
import { createHash, randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { GrpcCaller } from "../parity/grpc-application.ts";
import { ports } from "./echo-applications.ts";

/** How a call ended: as it should, given up by itself, or failed, with the reason. */
export type Ending = "ok" | "given up" | `failed: ${string}` | `wrong bytes: ${string}`;
export type CallKind = "http/1.1" | "http/2" | "grpc unary" | "grpc stream" | "websocket";
export const callKinds: readonly CallKind[] = ["http/1.1", "http/2", "grpc unary", "grpc stream", "websocket"];

const maxBodyBytes = 256 * 1024;
const maxChunkBytes = 16 * 1024;
const timeoutMs = 60_000;
/** Shares of the calls that are given up, and read slowly. */
const givenUp = 0.15;
const slow = 0.1;

export class RandomCalls implements Disposable {
  readonly #address: string;
  readonly #host: string;
  readonly #random: () => number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });
  readonly #grpc: GrpcCaller;
  #session: ClientHttp2Session | undefined;

  /** `address` is a sidecar's, with its port; `host` the service. */
  constructor(address: string, host: string, random: () => number) {
    this.#address = address;
    this.#host = host;
    this.#random = random;
    this.#grpc = new GrpcCaller(address, `${host}:${ports.grpc}`);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#session?.destroy();
    this.#grpc[Symbol.dispose]();
  }

  call(kind: CallKind): Promise<Ending> {
    switch (kind) {
      case "http/1.1":
        return this.#http1();
      case "http/2":
        return this.#http2();
      case "grpc unary":
        return this.#unary();
      case "grpc stream":
        return this.#stream();
      case "websocket":
        return this.#webSocket();
    }
  }

  #body(): Buffer {
    return randomBytes(Math.floor(this.#random() ** 3 * maxBodyBytes));
  }

  async #http1(): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Duplex | Ending>();
    const [host, port] = this.#address.split(":");
    const outgoing = request({
      host,
      port,
      method: "POST",
      path: `http://${this.#host}:${ports.http1}/echo`,
      headers: { host: `${this.#host}:${ports.http1}` },
      agent: this.#agent,
      signal: AbortSignal.timeout(timeoutMs),
    });
    outgoing.on("error", (error) => resolve(`failed: ${error.message}`));
    outgoing.on("response", (response) => {
      if (response.statusCode !== 200) response.resume();
      resolve(response.statusCode === 200 ? (response as unknown as Duplex) : `failed: ${response.statusCode}`);
    });
    return this.#exchange(outgoing as unknown as Duplex, promise);
  }

  async #http2(): Promise<Ending> {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(`http://${this.#address}`);
      this.#session.on("error", () => undefined);
    }
    const { promise, resolve } = Promise.withResolvers<Duplex | Ending>();
    const stream = this.#session.request(
      { ":method": "POST", ":path": "/echo", ":authority": `${this.#host}:${ports.http2}` },
      { signal: AbortSignal.timeout(timeoutMs) },
    );
    stream.on("error", (error) => resolve(`failed: ${error.message}`));
    stream.on("close", () => resolve(`failed: closed with ${stream.rstCode}`));
    stream.on("response", ({ ":status": status }) => {
      if (status !== 200) stream.resume();
      resolve(status === 200 ? stream : `failed: ${status}`);
    });
    return this.#exchange(stream, promise, { giveUp: () => stream.close(constants.NGHTTP2_CANCEL) });
  }

  async #webSocket(): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Duplex | Ending>();
    const [host, port] = this.#address.split(":");
    const outgoing = request({
      host,
      port,
      path: `http://${this.#host}:${ports.http1}/socket`,
      headers: {
        host: `${this.#host}:${ports.http1}`,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": randomBytes(16).toString("base64"),
      },
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    outgoing.on("error", (error) => resolve(`failed: ${error.message}`));
    outgoing.on("response", (response) => resolve(`failed: ${response.resume().statusCode}`));
    outgoing.on("upgrade", (_response, socket) => resolve(socket));
    outgoing.end();
    const socket = await promise;
    if (typeof socket === "string") return socket;
    const ending = await this.#exchange(socket, Promise.resolve(socket), { isFramed: false });
    socket.destroy();
    return ending;
  }

  /** Sends a body in pieces while the answer is read. What is not framed may end early like any connection. */
  async #exchange(
    outgoing: Duplex,
    answered: Promise<Duplex | Ending>,
    { isFramed = true, giveUp = (): unknown => outgoing.destroy() } = {},
  ): Promise<Ending> {
    const body = this.#body();
    const givesUpAt = this.#random() < givenUp ? Math.floor(this.#random() * body.length) : undefined;
    const isSlow = this.#random() < slow;
    const ended = Promise.withResolvers<Ending>();
    outgoing.on("error", (error: Error) => ended.resolve(`failed: ${error.message}`));
    void this.#send(outgoing, body, givesUpAt, () => {
      ended.resolve("given up");
      giveUp();
    });
    void answered.then(async (answer) => {
      if (typeof answer === "string") return ended.resolve(answer);
      const hash = createHash("sha256");
      let bytes = 0;
      answer.on("error", (error: Error) => ended.resolve(`failed: ${error.message}`));
      answer.on("aborted", () => ended.resolve("failed: aborted"));
      answer.on("close", () => ended.resolve(`failed: closed after ${bytes} of ${body.length} bytes`));
      answer.on("end", () => {
        const isSame = hash.digest("hex") === hashOf(body.subarray(0, bytes));
        const told = `${bytes} of ${body.length} bytes`;
        if (!isSame || (isFramed && bytes < body.length)) ended.resolve(`wrong bytes: ${told}`);
        else ended.resolve(bytes === body.length ? "ok" : `failed: ended after ${told}`);
      });
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        hash.update(chunk);
        if (!isSlow) return;
        answer.pause();
        setTimeout(() => answer.resume(), 5);
      });
    });
    return ended.promise;
  }

  async #send(outgoing: Duplex, body: Buffer, givesUpAt: number | undefined, giveUp: () => unknown): Promise<void> {
    for (let at = 0; at < body.length;) {
      if (givesUpAt !== undefined && at >= givesUpAt) {
        giveUp();
        return;
      }
      if (outgoing.destroyed) return;
      const size = 1 + Math.floor(this.#random() * maxChunkBytes);
      outgoing.write(body.subarray(at, at + size));
      at += size;
      await pause(0);
    }
    outgoing.end();
  }

  async #unary(): Promise<Ending> {
    const text = this.#body().toString("hex");
    const call = this.#grpc.unary("unary", Buffer.from(text), {}, timeoutMs);
    const isGivenUp = this.#random() < givenUp;
    if (isGivenUp) {
      await pause(0);
      call.cancel();
    }
    const { code, details, body } = await call.outcome;
    if (code === "OK") return body === text ? "ok" : `wrong bytes: ${body.length} of ${text.length}`;
    return isGivenUp ? "given up" : `failed: ${code} ${details}`;
  }

  /** Numbered messages, each answered in its turn. */
  async #stream(): Promise<Ending> {
    const stream = this.#grpc.chat();
    const count = 1 + Math.floor(this.#random() * 50);
    const givesUpAt = this.#random() < givenUp ? Math.floor(this.#random() * count) : undefined;
    const hashes: string[] = [];
    let answered = 0;
    const { promise, resolve } = Promise.withResolvers<Ending>();
    stream.on("error", () => undefined);
    stream.on("data", (answer: Buffer) => {
      if (hashOf(answer) !== hashes[answered]) resolve(`wrong bytes: message ${answered}`);
      answered += 1;
    });
    stream.on("status", ({ code, details }: { code: number; details: string }) => {
      if (code !== 0) resolve(givesUpAt === undefined ? `failed: ${code} ${details}` : "given up");
      else resolve(answered === count ? "ok" : `wrong bytes: ${answered} of ${count} messages`);
    });
    for (let index = 0; index < count; index += 1) {
      if (index === givesUpAt) {
        stream.cancel();
        return promise;
      }
      const body = Buffer.concat([Buffer.from(`${index} `), randomBytes(Math.floor(this.#random() * 4096))]);
      hashes.push(hashOf(body));
      stream.write(body);
      await pause(Math.floor(this.#random() * 4));
    }
    stream.end();
    return promise;
  }
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
