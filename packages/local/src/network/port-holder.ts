// Who has a port, for the message that says so: a best effort, by the kernel, which tells whose every socket is, and by
// /proc, which tells of which process only for those of the same user.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { commandOf, holdersOf, listeningSocket, listProcesses } from "@tulle/capture";
import { ownUid, userName } from "@tulle/identity/own";

const stateListen = "0A";
/** FIN_WAIT1, FIN_WAIT2, TIME_WAIT, LAST_ACK and CLOSING: nobody's any more. */
const closedStates = ["04", "05", "06", "09", "0B"];

/**
 * Whether nobody listens on `port` any more, and only connections that are closed keep it: a program that did not say
 * SO_REUSEADDR leaves them behind, for a minute at most.
 */
export function isKeptByClosedConnections(address: string, port: number): boolean {
  if (typeof listeningSocket({ ip: address, port }) === "object") return false;
  const states = statesOf(address, port);
  return !states.includes(stateListen) && states.some((state) => closedStates.includes(state));
}

/** ` by process 17 (node server.js)`, ` by a program of user mallory (uid 1001)`; empty when that cannot be known. */
export function holderText(address: string, port: number): string {
  const socket = listeningSocket({ ip: address, port });
  if (typeof socket === "string") return "";
  const { inode, uid } = socket;
  const [pid] = holdersOf(
    inode,
    listProcesses().map((process) => process.pid),
  );
  const program = pid === undefined ? "a program" : `process ${pid} (${commandOf(pid)})`;
  return uid === ownUid() && pid !== undefined ? ` by ${program}` : ` by ${program} of user ${userName(uid)}`;
}

/** What stands in the way of listening there; undefined when nothing does. */
export async function portProblem(address: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | undefined>();
  const server = createServer((socket) => socket.destroy());
  server.once("error", resolve);
  server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  const error = await promise;
  if (error === undefined) return undefined;
  if (error.code !== "EADDRINUSE") return error.message;
  if (isKeptByClosedConnections(address, port)) return "closed connections keep it, for a minute at most";
  return `it is in use${holderText(address, port)}`;
}

/** From the tables of proc_net_tcp(5): local address and port in hex, then the state. */
function statesOf(address: string, port: number): readonly string[] {
  const found: string[] = [];
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = (bytes: readonly number[]): string => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const local = hex([d, c, b, a]).toUpperCase();
  const portText = port.toString(16).padStart(4, "0").toUpperCase();
  for (const table of ["tcp", "tcp6"]) {
    const lines = textOf(`/proc/thread-self/net/${table}`).split("\n").slice(1);
    for (const line of lines) {
      const [, where = "", , state = ""] = line.trim().split(/\s+/, 4);
      const [host = "", itsPort] = where.split(":");
      if (itsPort === portText && (/^0+$/.test(host) || host.endsWith(local))) found.push(state);
    }
  }
  return found;
}

/** Empty where there is none. The file is that of the network which this thread is in. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
