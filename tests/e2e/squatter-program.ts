// A program of another user that lies in wait: it takes an address of a mesh when it can, answers as a control plane
// would, and prints each connection and all that it is sent; or it crowds a port. Started as root, it gives up that id
// first. It uses nothing of this clone.
import { readFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";

export interface SquatterTask {
  readonly uid: number;
  /** `host:port`; tried again and again until each is had. */
  readonly listen: readonly string[];
  readonly crowds?: readonly Crowd[];
}

/** `host:port` to which so many connections are opened that send this text, again where they were closed. */
export interface Crowd {
  readonly at: string;
  readonly count: number;
  readonly text: string;
}

const retryMs = 1;
/** Thousands that knock ten times a second each would take the processor, which no port can refuse. */
const knockAgainMs = 1000;

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function take(at: string): void {
  const { hostname: host, port } = new URL(`http://${at}`);
  const server = createServer((socket) => {
    tell({ connected: at });
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      tell({ received: at, text: chunk.toString("latin1") });
      const body = JSON.stringify({ resourceVersion: 1, items: [], findings: [] });
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
  });
  const listen = (): void => void server.listen({ host, port: Number(port) });
  server.on("error", () => setTimeout(listen, retryMs));
  server.on("listening", () => tell({ listening: at }));
  listen();
}

function crowd({ at, count, text }: Crowd): void {
  const { hostname: host, port } = new URL(`http://${at}`);
  let connected = 0;
  const open = (): void => {
    const socket: Socket = connect({ host, port: Number(port) }, () => {
      socket.write(text);
      connected += 1;
      if (connected === count) tell({ crowded: at });
    });
    socket.on("error", () => undefined).on("data", () => undefined);
    socket.on("close", () => setTimeout(open, knockAgainMs));
  };
  for (let index = 0; index < count; index += 1) open();
}

const task = JSON.parse(readFileSync(0, "utf8")) as SquatterTask;
process.setgroups!([]);
process.setgid!(task.uid);
process.setuid!(task.uid);
if (process.getuid!() !== task.uid) throw new Error("still the user of before");
for (const at of task.listen) take(at);
for (const each of task.crowds ?? []) crowd(each);
tell({ ready: process.pid });
