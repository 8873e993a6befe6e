// Runs on the load's core: requests at a steady rate, whatever becomes of the ones before them, each on a connection
// that is free. Time is cut into windows; the program says when one begins, and at its end which latencies it had.
// Arguments: port, requests per second, milliseconds of a window.
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

const [port = 0, perSecond = 0, windowMs = 0] = process.argv.slice(2).map(Number);
const request = "GET /api/catalog HTTP/1.1\r\nhost: bench\r\n\r\n";
const free: Connection[] = [];
/** More than a proxy that keeps up ever has in hand; beyond it a request counts as one that took the whole window. */
const maxConnections = 500;
let connectionCount = 0;
let latenciesMs: number[] = [];

class Connection {
  readonly #socket: Socket;
  #sentAtMs = 0;
  #received = 0;

  constructor() {
    connectionCount += 1;
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.on("data", (chunk: Buffer) => this.#onData(chunk));
    this.#socket.on("error", fail);
    this.#socket.on("close", () => fail(new Error("the proxy closed a connection")));
  }

  send(): void {
    this.#sentAtMs = performance.now();
    this.#received = 0;
    this.#socket.write(request);
  }

  #onData(chunk: Buffer): void {
    if (this.#received === 0 && !chunk.toString("latin1", 0, 12).endsWith(" 200")) {
      fail(new Error(chunk.toString("latin1")));
    }
    this.#received += chunk.length;
    if (this.#received <= 1024) return;
    latenciesMs.push(performance.now() - this.#sentAtMs);
    free.push(this);
  }
}

function fail(error: Error): never {
  throw error;
}

const startMs = performance.now();
let sent = 0;
function sendDue(): void {
  const due = Math.floor(((performance.now() - startMs) * perSecond) / 1000);
  // After a pause of this process's own, not everything at once: that would measure the pause.
  if (due - sent > perSecond / 100) sent = due - 1;
  for (; sent < due; sent += 1) {
    const connection = free.pop() ?? (connectionCount < maxConnections ? new Connection() : undefined);
    if (connection === undefined) latenciesMs.push(windowMs);
    else connection.send();
  }
}
setInterval(sendDue, 1);

export interface Window {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

for (let number = 0; ; number++) {
  latenciesMs = [];
  process.stdout.write(`window ${number} begins\n`);
  await delay(windowMs);
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? NaN;
  const window: Window = { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
  process.stdout.write(`window ${number} ${JSON.stringify(window)}\n`);
}
