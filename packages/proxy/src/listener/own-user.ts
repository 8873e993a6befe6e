// Whether the program at the other end of a connection within this machine runs under our own user id. Where no network
// namespace keeps programs of other users away from loopback, ports that speak in the workload's name ask this.
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";

/** The uid is the eighth column of a row of the kernel's table (proc(5), /proc/net/tcp). */
const uidColumn = 7;

/** `0100007F:1F90`: the address in the machine's own byte order, the port as it is. */
function tableAddress(ip: string, port: number): string {
  const bytes = ip.split(".").map(Number);
  const hex = (value: number, digits: number): string => value.toString(16).toUpperCase().padStart(digits, "0");
  return `${bytes
    .toReversed()
    .map((byte) => hex(byte, 2))
    .join("")}:${hex(port, 4)}`;
}

/** The uid in the row of the socket with this address and this peer; undefined = there is no such row. */
export function uidInTable(
  table: string,
  own: { readonly ip: string; readonly port: number },
  peer: { readonly ip: string; readonly port: number },
): number | undefined {
  const at = table.indexOf(` ${tableAddress(own.ip, own.port)} ${tableAddress(peer.ip, peer.port)} `);
  if (at < 0) return undefined;
  const start = table.lastIndexOf("\n", at) + 1;
  const end = table.indexOf("\n", at);
  const columns = table
    .slice(start, end < 0 ? undefined : end)
    .trim()
    .split(/\s+/);
  const uid = Number(columns[uidColumn]);
  return Number.isInteger(uid) ? uid : undefined;
}

/**
 * True for a peer of our own user or of root, which may do anything here. A connection that is not in the kernel's table (it
 * has gone, or comes from elsewhere) is not. Systems without that table tell nothing, and everybody passes.
 */
export function isOfOwnUser({ localAddress, localPort, remoteAddress, remotePort }: Socket): boolean {
  if (process.platform !== "linux" || process.getuid === undefined) return true;
  if (localAddress === undefined || remoteAddress === undefined || localAddress.includes(":")) return false;
  const here = { ip: localAddress, port: localPort ?? 0 };
  const there = { ip: remoteAddress, port: remotePort ?? 0 };
  const uid = uidInTable(readFileSync("/proc/net/tcp", "latin1"), there, here);
  return uid === 0 || uid === process.getuid();
}
