// Both proxies before one bad back end, and what is needed to play a row of the failure table on each: a raw client
// with an address of its own, the access-log lines of that address, counters, and a witness on another connection that
// has to be served all the while.
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { freePort, waitFor } from "../../../../../tests/tools/processes.ts";
import { countersOf, type Side, startEnvoy, startOurs } from "../parity-pair.ts";
import { type BadBackEnd, startBadBackEnd } from "./bad-back-end.ts";
import { failureBootstrap, failureListeners } from "./failure-bootstrap.ts";

/** Longest wait for anything, on a machine that does other work too. */
const patienceMs = 60_000;

export type SideName = "ours" | "envoys";

export interface FailureStage {
  readonly backEnd: BadBackEnd;
  connect(side: SideName, listener: string, from: string): Promise<RawClient>;
  /** `<status> <flags> <details>` of each request of that address, once there are so many. */
  logLines(side: SideName, from: string, count: number): Promise<readonly string[]>;
  counter(side: SideName, name: string): Promise<number>;
  witness(side: SideName): Witness;
  stop(): Promise<void>;
}

/** Exact bytes out, and whatever comes back. */
export class RawClient {
  readonly socket: net.Socket;
  /** For paths that no other client asks for. */
  readonly id: string;
  received = "";
  receivedBytes = 0;
  isClosed = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    this.id = socket.localAddress!.replaceAll(".", "-");
    socket.on("data", (data) => {
      this.receivedBytes += data.length;
      // Endless answers are counted, not kept.
      if (this.received.length < 100_000) this.received += data.toString("latin1");
    });
    socket.on("error", () => undefined).on("close", () => (this.isClosed = true));
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, "latin1"));
  }

  async receive(pattern: RegExp): Promise<void> {
    await waitFor(() => pattern.test(this.received), {
      timeoutMs: patienceMs,
      what: `${String(pattern)} in an answer`,
      details: () => this.received.slice(0, 500),
    });
  }

  async end(): Promise<void> {
    await waitFor(() => this.isClosed, {
      timeoutMs: patienceMs,
      what: "the end of the connection",
      details: () => this.received.slice(0, 500),
    });
  }
}

/** One connection that asks again and again; it must neither fail nor be replaced. */
export interface Witness {
  /** Ends it; tells how many answers there were. @throws if one was not as it should be */
  finish(): Promise<number>;
}

export async function startFailureStage(): Promise<FailureStage> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-failures-"));
  const backEnd = await startBadBackEnd();
  // Nobody listens there, and no test is given it for a server of its own.
  const closedPort = await freePort();
  const bootstrapFor = (log: string): string => failureBootstrap(backEnd.port, closedPort, log);
  const ours = await startOurs(path.join(folder, "ours.log"), bootstrapFor);
  const envoys = await startEnvoy(folder, failureListeners.length, bootstrapFor);
  const sides: Readonly<Record<SideName, Side>> = { ours, envoys };
  return {
    backEnd,
    async connect(side, listener, from) {
      const port = sides[side].ports.get(listener)!;
      const options = { port, host: "127.0.0.1", localAddress: from, allowHalfOpen: false };
      const socket = net.connect(options);
      await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return new RawClient(socket);
    },
    async logLines(side, from, count) {
      let lines: readonly string[] = [];
      await waitFor(
        () => {
          lines = linesOf(sides[side].log, from);
          return lines.length >= count;
        },
        { timeoutMs: patienceMs, what: `${count} lines of ${from} in the access log`, details: () => lines.join("\n") },
      );
      return lines;
    },
    counter: async (side, name) =>
      (await countersOf(sides[side], new RegExp(`^${name.replaceAll(".", "\\.")}$`)))[name] ?? 0,
    witness: (side) => startWitness(sides[side].ports.get("strict")!),
    async stop() {
      await envoys.stop();
      await ours.stop();
      backEnd.close();
      fs.rmSync(folder, { recursive: true });
    },
  };
}

function linesOf(file: string, from: string): readonly string[] {
  if (!fs.existsSync(file)) return [];
  const text = fs.readFileSync(file, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line.startsWith(`${from}\t`))
    .map((line) => line.slice(from.length + 1));
}

function startWitness(port: number): Witness {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const connections = new Set<net.Socket>();
  let answers = 0;
  const over = new AbortController();
  const once = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const request = http.get({ host: "127.0.0.1", port, agent, path: "/ok" }, (response) => {
        response.resume().once("end", () => {
          if (response.statusCode !== 200) reject(new Error(`the witness got ${response.statusCode}`));
          else resolve();
        });
      });
      request.once("socket", (socket) => connections.add(socket)).once("error", reject);
    });
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await once();
      answers += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const running = run();
  // A failure is told when the witness is asked for.
  running.catch(() => undefined);
  return {
    async finish() {
      over.abort();
      await running;
      agent.destroy();
      if (connections.size !== 1) throw new Error(`the witness needed ${connections.size} connections`);
      return answers;
    },
  };
}
