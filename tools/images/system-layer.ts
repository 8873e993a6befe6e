// The lowest layer of every image: a C library, what the runtime needs besides, and the certificates of the public
// authorities, out of Debian's packages. No shell, no package manager, no user with a name to it but those of numbers.
import { chmodSync, cpSync, existsSync, globSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { debianFolder } from "../../tests/tools/debian-folder.ts";

const packages = ["libc6", "libstdc++6", "libgcc-s1", "libatomic1", "ca-certificates"] as const;

/**
 * What of them is there to be run with: the loader, the libraries and the tables by which names are resolved. The rest
 * is documentation, character sets and tools.
 */
const wanted = ["lib/*-linux-gnu/*.so*", "lib64/*", "usr/lib/*-linux-gnu/*.so*"] as const;

export async function makeSystemLayer(into: string): Promise<void> {
  const { root } = await debianFolder(packages);
  copyMatching(root, into, wanted);
  const authorities = globSync("usr/share/ca-certificates/**/*.crt", { cwd: root }).sort();
  write(
    into,
    "etc/ssl/certs/ca-certificates.crt",
    authorities.map((file) => readFileSync(path.join(root, file), "utf8")).join(""),
  );
  // Programs that ask who they are get a name for each number that a pod of the mesh runs as.
  write(into, "etc/passwd", "root:x:0:0:root:/:/\ntulle-proxy:x:1337:1337::/:/\ntulle:x:10001:10001::/:/\n");
  write(into, "etc/group", "root:x:0:\ntulle-proxy:x:1337:\ntulle:x:10001:\n");
  write(into, "etc/nsswitch.conf", "hosts: files dns\n");
  mkdirSync(path.join(into, "tmp"), { recursive: true });
  chmodSync(path.join(into, "tmp"), 0o1777);
}

/** Links stay links; what one points to comes with it by a pattern of its own. */
export function copyMatching(from: string, into: string, patterns: readonly string[]): void {
  for (const pattern of patterns) {
    for (const file of globSync(pattern, { cwd: from })) {
      const target = path.join(into, file);
      mkdirSync(path.dirname(target), { recursive: true });
      if (existsSync(target) && lstatSync(target).isDirectory()) continue;
      cpSync(path.join(from, file), target, { recursive: true, verbatimSymlinks: true });
    }
  }
}

function write(folder: string, file: string, content: string): void {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, content);
}
