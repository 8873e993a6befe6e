// Who has a port, for the message that says so: a best effort over /proc, which shows whose every socket is, and of which process only
// for those of the same user.
import { readFile, readdir, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import { ownUid, userName } from "@tulle/identity/own";

export interface PortHolder {
  readonly uid: number;
  /** Where that may be known. */
  readonly process: { readonly pid: number; /** The command line, shortened. */ readonly command: string } | undefined;
}

const stateListen = "0A";
/** FIN_WAIT1, FIN_WAIT2, TIME_WAIT, LAST_ACK and CLOSING: nobody's any more. */
const closedStates = ["04", "05", "06", "09", "0B"];

/** Who listens on `port` of `address` or of all addresses; undefined when that cannot be known. */
export async function portHolder(address: string, port: number): Promise<PortHolder | undefined> {
  const listening = await listeningSockets(address, port);
  const [uid] = listening.values();
  if (uid === undefined) return undefined;
  for (const pid of (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const folder = `/proc/${pid}/fd`;
    for (const descriptor of await readdir(folder).catch(() => [])) {
      const target = await readlink(`${folder}/${descriptor}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      const itsUid = inode === undefined ? undefined : listening.get(inode);
      if (itsUid !== undefined) {
        return { uid: itsUid, process: { pid: Number(pid), command: await commandOf(pid) } };
      }
    }
  }
  return { uid, process: undefined };
}

/**
 * Whether nobody listens on `port` any more, and only connections that are closed keep it: a program that did not say SO_REUSEADDR
 * leaves them behind, for a minute at most.
 */
export async function isKeptByClosedConnections(address: string, port: number): Promise<boolean> {
  const states = (await socketsOf(address, port)).map(({ state }) => state);
  return !states.includes(stateListen) && states.some((state) => closedStates.includes(state));
}

/** `by process 17 (node server.js)`, `by a program of user mallory (uid 1001)`; empty when that cannot be known. */
export async function holderText(address: string, port: number): Promise<string> {
  const holder = await portHolder(address, port);
  if (holder === undefined) return "";
  const program =
    holder.process === undefined ? "a program" : `process ${holder.process.pid} (${holder.process.command})`;
  return holder.uid === ownUid() && holder.process !== undefined
    ? ` by ${program}`
    : ` by ${program} of user ${userName(holder.uid)}`;
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
  if (await isKeptByClosedConnections(address, port)) return "closed connections keep it, for a minute at most";
  return `it is in use${await holderText(address, port)}`;
}

/** Inodes and users of those who listen. */
async function listeningSockets(address: string, port: number): Promise<ReadonlyMap<string, number>> {
  const sockets = await socketsOf(address, port);
  return new Map(sockets.filter(({ state }) => state === stateListen).map(({ inode, uid }) => [inode, uid]));
}

interface SocketRow {
  readonly state: string;
  readonly uid: number;
  readonly inode: string;
}

/** From the tables of proc_net_tcp(5): local address and port in hex, then state, … uid, …, inode. */
async function socketsOf(address: string, port: number): Promise<readonly SocketRow[]> {
  const found: SocketRow[] = [];
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = (bytes: readonly number[]): string => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const local = hex([d, c, b, a]).toUpperCase();
  const portText = port.toString(16).padStart(4, "0").toUpperCase();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const lines = (await readFile(table, "utf8").catch(() => "")).split("\n").slice(1);
    for (const line of lines) {
      const [, where = "", , state = "", , , , uid, , inode = ""] = line.trim().split(/\s+/);
      const [host = "", itsPort] = where.split(":");
      if (itsPort === portText && (/^0+$/.test(host) || host.endsWith(local)))
        found.push({ state, uid: Number(uid), inode });
    }
  }
  return found;
}

async function commandOf(pid: string): Promise<string> {
  const text = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).replaceAll("\0", " ").trim();
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
