// A user namespace in which who is not root is root, with users of pods beside it: those of the ranges that the machine
// has given to the user (subuid(5), subgid(5)). Whatever stands in its way is told with what to do, before anything
// else is made.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import os from "node:os";
import { CannotStart } from "../cannot-start.ts";
import type { SystemPrograms } from "./system-programs.ts";

export interface IdRange {
  readonly start: number;
  readonly count: number;
}

/** Where the machine's files are read; tests have others. */
export type ReadText = (file: string) => string;

export const fewestIds = 2048;
const instead = "Or run it as root, or leave --mode namespaces out: loopback mode needs none of it.";

/** A descriptor of the namespace, which lives as long as that. @throws {CannotStart} */
export async function makeUserNamespace(programs: SystemPrograms<"ordinary">): Promise<number> {
  const uid = process.geteuid!();
  const gid = process.getegid!();
  const user = { name: nameOf(uid), uid };
  const ranges = { uid: ownRange("uid", user), gid: ownRange("gid", user) };
  const refusal = forbiddenBy();
  if (refusal !== undefined) throw refusal;
  const child = spawn(programs.unshare, ["--user", "--", "/bin/sh", "-c", "echo made; read -r _"], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
  });
  let said = "";
  child.stdin.on("error", () => undefined);
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const closed = once(child, "close");
  const isMade = await Promise.race([once(child.stdout, "data").then(() => true), closed.then(() => false)]);
  try {
    if (!isMade) throw cannotBeMade(said.trim());
    for (const [program, own, range] of [
      [programs.newuidmap, uid, ranges.uid],
      [programs.newgidmap, gid, ranges.gid],
    ] as const) {
      run(program, [child.pid!, 0, own, 1, 1, range.start, range.count].map(String));
    }
    const descriptor = openSync(`/proc/${child.pid}/ns/user`, "r");
    probe(programs, `/proc/${process.pid}/fd/${descriptor}`);
    return descriptor;
  } finally {
    child.stdin.end();
    await closed;
  }
}

/** The machine's list need not have the user. */
function nameOf(uid: number): string {
  try {
    return os.userInfo().username;
  } catch {
    return String(uid);
  }
}

/** What is made later is made here once, and goes with its program. */
function probe(programs: SystemPrograms<"ordinary">, namespace: string): void {
  const { nsenter, unshare, mount, ip, nft } = programs;
  const script = '"$1" -t proc proc /proc && "$2" link add tulle type bridge && "$3" list tables';
  const entering = [`--user=${namespace}`, "--setuid", "0", "--setgid", "0", "--"];
  const making = [unshare, "--net", "--mount", "--pid", "--fork", "--kill-child", "--"];
  run(nsenter, [...entering, ...making, "/bin/sh", "-c", script, "probe", mount, ip, nft]);
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, {
    encoding: "utf8",
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
  });
  if (status !== 0) throw cannotBeMade(error?.message ?? stderr.trim());
}

const readMachine: ReadText = (file) => {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
};

/** The largest one that the file gives to the user, by name or number. @throws {CannotStart} */
export function ownRange(
  kind: "uid" | "gid",
  user: { readonly name: string; readonly uid: number },
  read: ReadText = readMachine,
): IdRange {
  const file = `/etc/sub${kind}`;
  const all = read(file)
    .split("\n")
    .map((line) => line.split(":"))
    .map(([owner, start, count]) => ({ owner, start: Number(start), count: Number(count) }))
    .filter(({ start, count }) => start > 0 && count > 0);
  const [largest] = all
    .filter(({ owner }) => owner === user.name || owner === String(user.uid))
    .toSorted((a, b) => b.count - a.count);
  if (largest !== undefined && largest.count >= fewestIds) return { start: largest.start, count: largest.count };
  const free = Math.max(100_000, ...all.map(({ start, count }) => start + count));
  throw new CannotStart(
    largest === undefined
      ? `${file} gives user ${user.name} no range of numbers, by which the users of pods are told apart`
      : `${file} gives user ${user.name} ${largest.count} numbers, and the users of pods take at least ${fewestIds}`,
    `As root: usermod --add-sub${kind}s ${free}-${free + 65_535} ${user.name} ${instead}`,
  );
}

/** What the kernel's settings say against it; undefined when nothing does. */
export function forbiddenBy(read: ReadText = readMachine): CannotStart | undefined {
  for (const [setting, value] of [
    ["user.max_user_namespaces", "15000"],
    ["user.max_net_namespaces", "15000"],
    ["kernel.unprivileged_userns_clone", "1"],
  ] as const) {
    if (settingOf(setting, read) !== "0") continue;
    return new CannotStart(
      `this machine lets nobody but root make networks for pods (${setting} = 0)`,
      `As root: sysctl -w ${setting}=${value} ${instead}`,
    );
  }
  return undefined;
}

export function cannotBeMade(said: string, read: ReadText = readMachine): CannotStart {
  const restriction = "kernel.apparmor_restrict_unprivileged_userns";
  if (settingOf(restriction, read) === "1") {
    return new CannotStart(
      `AppArmor lets nobody but root make networks for pods (${restriction} = 1): ${said}`,
      `As root: sysctl -w ${restriction}=0, or a profile of AppArmor that lets this program (userns,). ${instead}`,
    );
  }
  return new CannotStart(
    `no networks can be made for the pods in a user namespace: ${said}`,
    `In a container it takes --privileged: where files of /proc are hidden, no pod gets its own. ${instead}`,
  );
}

function settingOf(name: string, read: ReadText): string {
  return read(`/proc/sys/${name.replaceAll(".", "/")}`).trim();
}
