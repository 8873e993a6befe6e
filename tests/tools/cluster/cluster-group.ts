// The cgroup of a cluster: its own programs lie in `programs`, each node's pods beside it. Cgroups are what outlives a
// cluster whose end nobody saw, by a power cut or a kill, and with them its folder: a group without a process says
// that it has ended.
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { waitFor } from "../processes.ts";

const prefix = "tulle-kubernetes-";
const root = "/sys/fs/cgroup";

/** Below each controller, or the only tree of the second version. */
async function trees(): Promise<readonly string[]> {
  if (existsSync(path.join(root, "cgroup.controllers"))) return [root];
  return (await readdir(root)).map((controller) => path.join(root, controller));
}

export interface ClusterGroup {
  /** Below each controller. */
  readonly name: string;
  readonly folder: string;
}

/** A group and a folder of one name; this process, and those that it starts from here on, lie in the group. */
export async function joinNewGroup(): Promise<ClusterGroup> {
  const name = `${prefix}${crypto.randomUUID().slice(0, 8)}`;
  await makeGroup(path.join(name, "programs"));
  for (const tree of await trees()) await writeFile(path.join(tree, name, "programs", "cgroup.procs"), "0");
  const folder = path.join(tmpdir(), name);
  await mkdir(folder, { mode: 0o700 });
  return { name, folder };
}

/** In each tree; a new one of cpuset has no processors until it is given some. */
export async function makeGroup(name: string): Promise<void> {
  for (const tree of await trees()) {
    let parent = tree;
    for (const step of name.split("/")) {
      const folder = path.join(parent, step);
      await mkdir(folder, { recursive: true });
      for (const file of ["cpuset.cpus", "cpuset.mems"]) {
        if (path.basename(tree) !== "cpuset") continue;
        await writeFile(path.join(folder, file), await readFile(path.join(parent, file)));
      }
      parent = folder;
    }
  }
}

/** Removes what is left of clusters that have ended. */
export async function sweep(): Promise<void> {
  const alive = new Set<string>();
  for (const tree of await trees()) {
    for (const name of await namesIn(tree)) {
      const group = path.join(tree, name);
      if (await isAlive(group)) alive.add(name);
      else await waitFor(() => removeGroup(group), { what: `the processes of ${group} to end` });
    }
  }
  for (const name of await namesIn(tmpdir())) {
    if (!alive.has(name)) await rm(path.join(tmpdir(), name), { recursive: true, force: true });
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith(prefix));
}

async function isAlive(group: string): Promise<boolean> {
  const processes = await readFile(path.join(group, "programs", "cgroup.procs"), "utf8").catch(() => "");
  return processes !== "";
}

/** The deepest first. False while a process in it has not ended. */
async function removeGroup(group: string): Promise<boolean> {
  const inner = await readdir(group, { withFileTypes: true });
  for (const each of inner) if (each.isDirectory() && !(await removeGroup(path.join(group, each.name)))) return false;
  return rmdir(group).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
}
