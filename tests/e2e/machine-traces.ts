// What an instance has on a machine: processes, namespaces, links, tables and mounts, listed by the kernel's own files
// and the system's own programs.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";

const kinds = ["net", "mnt", "pid", "user"];

/** One line each; the same again when nothing of the instance is left. */
export interface MachineTraces {
  readonly processes: readonly string[];
  /** Networks and mount tables of those processes, and of all others that are in the same ones. */
  readonly links: readonly string[];
  readonly tables: readonly string[];
  readonly mounts: readonly string[];
}

/** Of the machine, as far as it could be of an instance in `folder`: other tests have their own beside it. */
async function tracesOf(folder: string): Promise<MachineTraces> {
  const [links, tables] = await Promise.all([
    runCommand("ip", ["-o", "link", "show"]),
    runCommand("nft", ["list", "tables"]),
  ]);
  const lines = (text: string, ours: RegExp): readonly string[] => text.split("\n").filter((line) => ours.test(line));
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  return {
    processes: processesOf(folder).map(({ pid, command }) => `${pid} ${command}`),
    links: lines(links.stdout, /: (machines|pods|node-\d|pod\d+|eth0@\S*)[:@]/),
    tables: lines(tables.stdout, /tulle_capture|tulle_services|tulle_way_out/),
    mounts: mounts.filter((line) => line.includes(folder) || / \/etc\/(hosts|resolv\.conf|nsswitch\.conf) /.test(line)),
  };
}

/** What is of the machine itself: it may be a container, whose files are mounted, and whose link is called eth0. */
export async function machineOf(folder: string): Promise<MachineTraces> {
  return { ...(await tracesOf(folder)), processes: [] };
}

/** All of an instance ends with its processes; the kernel may take a moment. */
export async function assertNothingLeft(
  folder: string,
  namespaces: ReadonlySet<string>,
  machine: MachineTraces,
): Promise<void> {
  let found: unknown;
  await waitFor(
    async () => {
      found = { ...(await tracesOf(folder)), inhabited: inhabited(namespaces) };
      return JSON.stringify(found) === JSON.stringify({ ...machine, inhabited: [] });
    },
    { what: "nothing of the instance to be left", intervalMs: 100, details: () => JSON.stringify(found, undefined, 2) },
  );
}

/** Namespaces in which processes of the instance are and this one is not. */
export function namespacesOf(folder: string): ReadonlySet<string> {
  const own = new Set(kinds.map((kind) => linkOf(`/proc/self/ns/${kind}`)));
  const found = processesOf(folder).flatMap(({ pid }) => kinds.map((kind) => linkOf(`/proc/${pid}/ns/${kind}`)));
  return new Set(found.filter((each) => each !== "" && !own.has(each)));
}

/** Of those namespaces the ones in which any process still is. */
function inhabited(namespaces: ReadonlySet<string>): readonly string[] {
  const all = pids().flatMap((pid) => kinds.map((kind) => linkOf(`/proc/${pid}/ns/${kind}`)));
  return [...new Set(all)].filter((each) => namespaces.has(each));
}

function processesOf(folder: string): readonly { readonly pid: string; readonly command: string }[] {
  return pids().flatMap((pid) => {
    const [command, environment] = ["cmdline", "environ"].map((name) => textOf(`/proc/${pid}/${name}`));
    const place = linkOf(`/proc/${pid}/cwd`);
    const isOurs = [command!, environment!, place].some((text) => text.includes(folder));
    return isOurs && pid !== String(process.pid) ? [{ pid, command: command!.replaceAll("\0", " ") }] : [];
  });
}

function pids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return "";
  }
}
