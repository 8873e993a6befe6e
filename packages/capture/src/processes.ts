// Which processes have a socket open, and which of them belong together, by /proc (proc(5)). A process sees the open
// files of those of its own user, and root those of all.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { addressText } from "./ip-address.ts";
import { listenersInTable } from "./socket-table.ts";

const maxCommandLength = 60;

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
}

/** Every process that runs now. */
export function listProcesses(): readonly ProcessRow[] {
  return namesIn("/proc").flatMap((name) => (/^\d+$/.test(name) ? (processRow(Number(name)) ?? []) : []));
}

function processRow(pid: number): ProcessRow | undefined {
  // The name in parentheses may hold spaces and parentheses: fields are counted from the last one.
  const stat = textOf(`/proc/${pid}/stat`);
  const [, parent, group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (session === undefined) return undefined;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session) };
}

/**
 * The leader and what it has started, as far as that is known by parent, process group or session; itself without
 * looking when it is alone.
 */
export function familyOf(leader: number, all: readonly ProcessRow[]): readonly number[] {
  const family = new Set([leader]);
  for (const { pid, group, session } of all) if (group === leader || session === leader) family.add(pid);
  for (let size = 0; size !== family.size;) {
    size = family.size;
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid);
  }
  return [...family];
}

/** Those of the processes that have the socket open, as far as their open files may be seen. */
export function holdersOf(inode: number, pids: Iterable<number>): readonly number[] {
  const wanted = `socket:[${inode}]`;
  return [...pids].filter((pid) =>
    namesIn(`/proc/${pid}/fd`).some((descriptor) => linkOf(`/proc/${pid}/fd/${descriptor}`) === wanted),
  );
}

/**
 * `address:port` of each socket at which one of the processes listens, in the order of the ports, as far as their open
 * files may be seen.
 */
export function listeningPlaces(pids: Iterable<number>): readonly string[] {
  const links = new Set(
    [...pids].flatMap((pid) => namesIn(`/proc/${pid}/fd`).map((descriptor) => linkOf(`/proc/${pid}/fd/${descriptor}`))),
  );
  return listenersInTable()
    .filter(({ inode }) => links.has(`socket:[${inode}]`))
    .toSorted((a, b) => a.local.port - b.local.port)
    .map(({ local }) => `${addressText(local.address)}:${local.port}`);
}

/** The variables that the process was started with; empty when they may not be seen. */
export function environmentOf(pid: number): ReadonlyMap<string, string> {
  const variables = textOf(`/proc/${pid}/environ`).split("\0");
  return new Map(variables.map((variable) => variable.split(/=(.*)/s) as [string, string]));
}

/**
 * The command line in one short and printable line, whatever its program may have written there; empty when it may not
 * be seen.
 */
export function commandOf(pid: number): string {
  const command = textOf(`/proc/${pid}/cmdline`)
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
  return command.length > maxCommandLength ? `${command.slice(0, maxCommandLength - 1)}…` : command;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return "";
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
