// Both proxies before one bad back end, and what is needed to play a row of the failure table on each: a client with
// an address of its own, the access-log lines of that address, counters, and a witness on another connection that
// has to be served all the while.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { HttpVersion } from "../../../../../tests/tools/http2-client.ts";
import { freePort, waitFor } from "../../../../../tests/tools/processes.ts";
import { countersOf, type Side, startEnvoy, startOurs } from "../parity-pair.ts";
import { type BadBackEnd, startBadBackEnd } from "./bad-back-end.ts";
import { clients, type FailureClient, patienceMs } from "./failure-client.ts";
import { failureBootstrap, failureListeners } from "./failure-bootstrap.ts";

export type SideName = "ours" | "envoys";

export interface FailureStage {
  readonly backEnd: BadBackEnd;
  connect(side: SideName, listener: string, from: string, version: HttpVersion): Promise<FailureClient>;
  /** `<status> <flags> <details>` of each request of that address, once there are so many. */
  logLines(side: SideName, from: string, count: number): Promise<readonly string[]>;
  counter(side: SideName, name: string): Promise<number>;
  witness(side: SideName, version: HttpVersion): Witness;
  stop(): Promise<void>;
}

/** One connection that asks again and again; it must neither fail nor be replaced. */
export interface Witness {
  /** Ends it; tells how many answers there were. @throws if one was not as it should be */
  finish(): Promise<number>;
}

/** Short beside what a row takes. Without a pause the table cost 42 s of CPU in the place of 5. */
const witnessPauseMs = 10;

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
    async connect(side, listener, from, version) {
      const port = sides[side].ports.get(listener)!;
      const options = { port, host: "127.0.0.1", localAddress: from, allowHalfOpen: false };
      const socket = net.connect(options);
      await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return clients[version](socket);
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
    witness: (side, version) => startWitness(sides[side].ports.get("strict")!, version),
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

function startWitness(port: number, version: HttpVersion): Witness {
  const connections = new Set<net.Socket>();
  const asker = version === "HTTP/2" ? askByStreams(port, connections) : askByRequests(port, connections);
  let answers = 0;
  const over = new AbortController();
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const status = await asker.ask();
      if (status !== 200) throw new Error(`the witness got ${status}`);
      answers += 1;
      await delay(witnessPauseMs);
    }
  };
  const running = run();
  // A failure is told when the witness is asked for.
  running.catch(() => undefined);
  return {
    async finish() {
      over.abort();
      await running;
      asker.close();
      if (connections.size !== 1) throw new Error(`the witness needed ${connections.size} connections`);
      return answers;
    },
  };
}

interface Asker {
  /** The status of an answer that came whole. */
  ask(): Promise<number>;
  close(): void;
}

function askByRequests(port: number, connections: Set<net.Socket>): Asker {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  return {
    ask: () =>
      new Promise((resolve, reject) => {
        const request = http.get({ host: "127.0.0.1", port, agent, path: "/ok" }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode!));
        });
        request.once("socket", (socket) => connections.add(socket)).once("error", reject);
      }),
    close: () => agent.destroy(),
  };
}

/** A session makes no second connection. */
function askByStreams(port: number, connections: Set<net.Socket>): Asker {
  const socket = net.connect(port, "127.0.0.1");
  connections.add(socket);
  const session = http2.connect("http://a", { createConnection: () => socket });
  session.on("error", () => undefined);
  return {
    ask: () =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ":path": "/ok" });
        let status = 0;
        stream.once("response", (head) => (status = head[":status"] ?? 0));
        stream
          .resume()
          .once("end", () => resolve(status))
          .once("error", reject);
      }),
    close: () => session.close(),
  };
}
