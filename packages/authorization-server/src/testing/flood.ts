// An attacker's load: requests over kept connections, as many a second as the server answers. Written on plain sockets,
// since a client that reads all of each answer would need more of the machine than the server under attack.
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface FloodRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Flood {
  readonly port: number;
  readonly connections: number;
  /** By its number, from 1 on. */
  readonly request: (number: number) => FloodRequest;
  /** Asked before each request. */
  readonly isOver: (sent: number) => boolean;
}

/** How many answers had which status. */
export async function flood({ port, connections, request, isOver }: Flood): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>();
  let sent = 0;
  const next = (): string | undefined => {
    if (isOver(sent)) return undefined;
    sent += 1;
    return asText(request(sent));
  };
  const answered = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  await Promise.all(Array.from({ length: connections }, () => lane(connect(port, "127.0.0.1"), next, answered)));
  return statuses;
}

function asText({ method, path, headers = {}, body = "" }: FloodRequest): string {
  const all = { host: "localhost", ...headers, "content-length": String(body.length) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

/** One request after the other on one connection; every answer of our server says its length. */
function lane(socket: Socket, next: () => string | undefined, answered: (status: number) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let received = "";
  const send = (): void => {
    const request = next();
    if (request !== undefined) socket.write(request);
    else socket.end(resolve);
  };
  socket.setNoDelay().setEncoding("latin1");
  socket.once("connect", send);
  socket.on("data", (text: string) => {
    received += text;
    const head = received.indexOf("\r\n\r\n");
    if (head === -1) return;
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, head + 2))?.[1];
    if (length === undefined) {
      socket.destroy(new Error(`an answer without its length:\n${received}`));
      return;
    }
    if (received.length < head + 4 + Number(length)) return;
    answered(Number(received.slice(9, 12)));
    received = "";
    send();
  });
  socket.once("error", reject);
  socket.once("close", () => reject(new Error(`the server closed a connection after:\n${received}`)));
  return promise;
}
