// What a process and its descendants have used, as Linux counts it. CPU time holds on a noisy machine, where requests per second do not.
import { readdir, readFile } from "node:fs/promises";

/** The kernel reports CPU time to programs in hundredths of a second, whatever its own tick is (USER_HZ). */
const ticksPerSecond = 100;

export interface ProcessUsage {
  /** User and system time of all threads and of all living descendants. */
  readonly cpuSeconds: number;
  /** Resident memory of the process and its living descendants. */
  readonly residentBytes: number;
}

export async function readProcessUsage(processId: number): Promise<ProcessUsage> {
  const usages = await Promise.all((await withDescendants(processId)).map(readOne));
  return {
    cpuSeconds: usages.reduce((sum, usage) => sum + usage.cpuSeconds, 0),
    residentBytes: usages.reduce((sum, usage) => sum + usage.residentBytes, 0),
  };
}

async function readOne(processId: number): Promise<ProcessUsage> {
  const fields = await statFields(processId);
  const status = await readFile(`/proc/${processId}/status`, "utf8");
  const residentKib = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
  // proc(5): utime and stime are fields 14 and 15, of which the first two are cut off here.
  return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond, residentBytes: residentKib * 1024 };
}

/** The fields of /proc/PID/stat from the third on; the second, a name in parentheses, may hold spaces. */
async function statFields(processId: number): Promise<readonly string[]> {
  const stat = await readFile(`/proc/${processId}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

async function withDescendants(processId: number): Promise<readonly number[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(
    // A process may end between the listing and the reading.
    ids.map(async (id) => ({ id, parent: Number((await statFields(id).catch(() => []))[1] ?? 0) })),
  );
  const found = [processId];
  for (const ancestor of found) found.push(...parents.filter(({ parent }) => parent === ancestor).map(({ id }) => id));
  return found;
}
