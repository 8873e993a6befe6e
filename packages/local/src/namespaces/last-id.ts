// Which users and groups there are where this process is: in a user namespace not every number is somebody.
import { readFileSync } from "node:fs";

/** The highest number; all below it are there, too (user_namespaces(7)). */
export function lastId(kind: "uid" | "gid"): number {
  const ranges = readFileSync(`/proc/self/${kind}_map`, "utf8").trim().split("\n");
  return Math.max(
    ...ranges.map((line) => {
      const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return inside + count - 1;
    }),
  );
}
