// What a process and its descendants have used, as Linux counts it. CPU time holds on a noisy machine, where requests
// per second do not.
import { readdir, readFile } from "node:fs/promises";

export interface ProcessUsage {
  /** User and system time of all living threads, and of those of all living descendants. */
  readonly cpuSeconds: number;
  /** The share of it outside of the kernel, by the kernel's samples: good to a hundredth of a second. */
  readonly userSeconds: number;
  /** Resident memory of the process and its living descendants. */
  readonly residentBytes: number;
}

export async function readProcessUsage(processId: number): Promise<ProcessUsage> {
  const usages = await Promise.all((await withDescendants(processId)).map(readOne));
  return {
    cpuSeconds: usages.reduce((sum, usage) => sum + usage.cpuSeconds, 0),
    userSeconds: usages.reduce((sum, usage) => sum + usage.userSeconds, 0),
    residentBytes: usages.reduce((sum, usage) => sum + usage.residentBytes, 0),
  };
}

/** USER_HZ, the same on every Linux. */
const ticksPerSecond = 100;

async function readOne(processId: number): Promise<ProcessUsage> {
  const status = await readFile(`/proc/${processId}/status`, "utf8");
  const residentKib = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
  const userTicks = Number((await statFields(processId))[11]);
  return {
    cpuSeconds: await processCpuSeconds(processId),
    userSeconds: userTicks / ticksPerSecond,
    residentBytes: residentKib * 1024,
  };
}

/** Of all living threads of that process alone. */
export async function processCpuSeconds(processId: number): Promise<number> {
  const threads = await readdir(`/proc/${processId}/task`);
  const each = await Promise.all(threads.map((thread) => threadCpuSeconds(`/proc/${processId}/task/${thread}`)));
  return each.reduce((sum, seconds) => sum + seconds, 0);
}

/**
 * In nanoseconds; /proc/PID/stat knows hundredths of a second, too coarse for a share of a core during a second or two.
 */
async function threadCpuSeconds(folder: string): Promise<number> {
  // A thread may end between the listing and the reading.
  const schedstat = await readFile(`${folder}/schedstat`, "utf8").catch(() => "0");
  return Number(schedstat.split(" ", 1)[0]) / 1e9;
}

/** The fields of /proc/PID/stat from the third on; the second, a name in parentheses, may hold spaces. */
async function statFields(processId: number): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${processId}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** The process itself first. */
export async function withDescendants(processId: number): Promise<readonly number[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(
    // A process may end between the listing and the reading.
    ids.map(async (id) => ({ id, parent: Number((await statFields(id).catch(() => []))[1] ?? 0) })),
  );
  const found = [processId];
  for (const ancestor of found) found.push(...parents.filter(({ parent }) => parent === ancestor).map(({ id }) => id));
  return found;
}
