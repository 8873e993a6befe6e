// The kernel's table of TCP sockets as text (proc_net_tcp(5)): the slow way to whose socket it is, for a process that
// may not ask the kernel for a single one. A table of 20,000 connections takes 20 ms to read.
import { readFileSync } from "node:fs";
import { isSameAddress } from "./ip-address.ts";
import { tcpState, type SocketAnswer, type WireEnd } from "./inet-diag.ts";

/** The socket with exactly these ends. */
export function connectionInTable(local: WireEnd, remote: WireEnd): SocketAnswer | undefined {
  return rowsOfPort(local.port).find(
    (row) =>
      row.state !== tcpState.listen &&
      row.remote.port === remote.port &&
      isSameAddress(row.local.address, local.address) &&
      isSameAddress(row.remote.address, remote.address),
  );
}

/** The socket that takes connections to `at`: one that listens there, else one that listens at all addresses. */
export function listenerInTable(at: WireEnd): SocketAnswer | undefined {
  const listeners = rowsOfPort(at.port).filter(isListening);
  const isAny = ({ local }: SocketAnswer): boolean => local.address.every((byte) => byte === 0);
  return (
    listeners.find(({ local }) => isSameAddress(local.address, at.address)) ??
    listeners.find((row) => isAny(row) && row.local.address.length === at.address.length) ??
    listeners.find((row) => isAny(row) && row.local.address.length === 16)
  );
}

/** Every socket that takes connections. */
export function listenersInTable(): readonly SocketAnswer[] {
  return rowsWith(` ${tcpState.listen.toString(16).toUpperCase().padStart(2, "0")} `).filter(isListening);
}

function isListening({ state }: SocketAnswer): boolean {
  return state === tcpState.listen;
}

function rowsOfPort(port: number): readonly SocketAnswer[] {
  const portText = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  return rowsWith(portText).filter(({ local }) => local.port === port);
}

/** Lines without the text, which are most, are not read further. */
function rowsWith(text: string): readonly SocketAnswer[] {
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => {
    const lines = textOf(file).split("\n").slice(1);
    return lines.filter((line) => line.includes(text)).flatMap((line) => parseTableRow(line) ?? []);
  });
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

/** `   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 …` */
function parseTableRow(line: string): SocketAnswer | undefined {
  const columns = line.trim().split(/\s+/);
  const [, local, remote, state, , , , uid, , inode] = columns;
  if (local === undefined || remote === undefined || state === undefined || inode === undefined) return undefined;
  return {
    state: Number.parseInt(state, 16),
    local: tableEnd(local),
    remote: tableEnd(remote),
    // Not given again while the socket is open, which is what it is compared for.
    cookie: BigInt(inode),
    uid: Number(uid),
    inode: Number(inode),
  };
}

/** `0100007F:1F90`: the address in words of the machine's own byte order, the port as it is. */
function tableEnd(text: string): WireEnd {
  const [address = "", port = ""] = text.split(":");
  const words = address.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => [6, 4, 2, 0].map((at) => Number.parseInt(word.slice(at, at + 2), 16)));
  return { address: Uint8Array.from(bytes), port: Number.parseInt(port, 16) };
}
