// When a process began: with its id it names one process for good, where an id alone is reused.
import { readFile } from "node:fs/promises";

/**
 * Field 22 of `/proc/<pid>/stat` (proc(5): starttime, in clock ticks since boot); undefined when no such process runs
 * or it is a zombie. Where there is no /proc, a process that can be signalled counts as the one that was meant.
 */
export async function processStartTime(processId: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${processId}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) {
    if (process.platform === "linux") return undefined;
    try {
      process.kill(processId, 0);
      return "unknown";
    } catch {
      return undefined;
    }
  }
  // The name in parentheses may hold spaces and parentheses: fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? undefined : fields[19];
}
