// The programs of the system by which networks and mounts are made and entered; all of them are there before anything
// is started.
import path from "node:path";
import { accessSync, constants } from "node:fs";
import { CannotStart } from "../cannot-start.ts";

/** By what brings them (Debian's packages). */
const packages = {
  nsenter: "util-linux",
  unshare: "util-linux",
  setpriv: "util-linux",
  mount: "mount",
  env: "coreutils",
  ip: "iproute2",
  nft: "nftables",
} as const;

/** What who is not root needs. */
const packagesOf = { root: packages, ordinary: { ...packages, newuidmap: "uidmap", newgidmap: "uidmap" } } as const;

type User = keyof typeof packagesOf;

/** Absolute paths: an application's PATH says nothing of them. */
export type SystemPrograms<Of extends User = "root"> = Readonly<Record<keyof (typeof packagesOf)[Of], string>>;

/** @throws {CannotStart} naming all that is missing */
export function findSystemPrograms<Of extends User = "root">(
  searchPath: string | undefined,
  user: Of = "root" as Of,
): SystemPrograms<Of> {
  const packageOf: Readonly<Record<string, string>> = packagesOf[user];
  // Who is not root has no folders for the system's programs on PATH (Debian).
  const folders = [...(searchPath ?? "").split(path.delimiter), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  const find = (program: string): string | undefined =>
    folders
      .filter((folder) => path.isAbsolute(folder))
      .map((folder) => path.join(folder, program))
      .find(isExecutable);
  const found = Object.keys(packageOf).map((program) => [program, find(program)] as const);
  const missing = found.filter(([, file]) => file === undefined).map(([program]) => program);
  if (missing.length === 0) return Object.fromEntries(found) as SystemPrograms<Of>;
  const wanted = [...new Set(missing.map((program) => packageOf[program]))].join(" ");
  throw new CannotStart(
    `pods cannot have networks of their own: ${missing.join(", ")} not found`,
    `Install ${wanted} (Debian, Ubuntu: apt-get install ${wanted}), or leave --mode namespaces out.`,
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
