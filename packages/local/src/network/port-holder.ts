// Who has a port, for the message that says so: a best effort over /proc, which shows only processes of the same user.
import { readFile, readdir, readlink } from "node:fs/promises";

export interface PortHolder {
  readonly pid: number;
  /** The command line, shortened. */
  readonly command: string;
}

const stateListen = "0A";
/** FIN_WAIT1, FIN_WAIT2, TIME_WAIT, LAST_ACK and CLOSING: nobody's any more. */
const closedStates = ["04", "05", "06", "09", "0B"];

/** The process that listens on `port` of `address` or of all addresses; undefined when that cannot be known. */
export async function portHolder(address: string, port: number): Promise<PortHolder | undefined> {
  const inodes = await listeningInodes(address, port);
  if (inodes.size === 0) return undefined;
  for (const pid of (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const folder = `/proc/${pid}/fd`;
    for (const descriptor of await readdir(folder).catch(() => [])) {
      const target = await readlink(`${folder}/${descriptor}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined && inodes.has(inode)) return { pid: Number(pid), command: await commandOf(pid) };
    }
  }
  return undefined;
}

/**
 * Whether nobody listens on `port` any more, and only connections that are closed keep it: a program that did not say SO_REUSEADDR
 * leaves them behind, for a minute at most.
 */
export async function isKeptByClosedConnections(address: string, port: number): Promise<boolean> {
  const states = (await socketsOf(address, port)).map(({ state }) => state);
  return !states.includes(stateListen) && states.some((state) => closedStates.includes(state));
}

async function listeningInodes(address: string, port: number): Promise<ReadonlySet<string>> {
  const sockets = await socketsOf(address, port);
  return new Set(sockets.filter(({ state }) => state === stateListen).map(({ inode }) => inode));
}

/** From the tables of proc_net_tcp(5): local address and port in hex, then state, … inode. */
async function socketsOf(
  address: string,
  port: number,
): Promise<readonly { readonly state: string; readonly inode: string }[]> {
  const found: { readonly state: string; readonly inode: string }[] = [];
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  const hex = (bytes: readonly number[]): string => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const local = hex([d, c, b, a]).toUpperCase();
  const portText = port.toString(16).padStart(4, "0").toUpperCase();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const lines = (await readFile(table, "utf8").catch(() => "")).split("\n").slice(1);
    for (const line of lines) {
      const [, where = "", , state = "", , , , , , inode = ""] = line.trim().split(/\s+/);
      const [host = "", itsPort] = where.split(":");
      if (itsPort === portText && (/^0+$/.test(host) || host.endsWith(local))) found.push({ state, inode });
    }
  }
  return found;
}

async function commandOf(pid: string): Promise<string> {
  const text = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).replaceAll("\0", " ").trim();
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
