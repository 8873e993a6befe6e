// An installation of Tulle in a folder, as `npm install` would make it on this platform: what runs elsewhere, in an
// image or from an unpacked file, is made of it.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { compileFiles, isCode } from "./bundle-programs.ts";

const root = path.resolve(import.meta.dirname, "..");

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
}

/** `withoutNode`: the runtime lies elsewhere. */
export function makeInstallation(folder: string, { withoutNode = false } = {}): void {
  mkdirSync(folder, { recursive: true });
  const program = [path.join(root, "tools/build-package.ts"), path.join(folder, "dist")];
  const { status, error } = spawnSync(process.execPath, program, { stdio: "inherit" });
  if (status !== 0) throw new Error(`the packages cannot be built: ${error?.message ?? status}`);
  for (const name of ["package.json", "LICENSE"]) cpSync(path.join(root, name), path.join(folder, name));
  for (const name of installedPackages()) {
    if (!withoutNode || !name.startsWith("node_modules/node-")) copyPackage(name, folder);
  }
}

/**
 * Keeps what the runtime makes of the installation's code, for whoever runs it with the same one, wherever the folder
 * lies then.
 */
export function compileAhead(folder: string): void {
  const bundle = path.join(folder, "dist/bundle");
  const files = readdirSync(bundle).filter((file) => isCode(file));
  const { status, stderr } = compileFiles(
    files.map((file) => path.join(bundle, file)),
    { NODE_COMPILE_CACHE: path.join(folder, "dist/node_modules/.cache/compile"), NODE_COMPILE_CACHE_PORTABLE: "1" },
  );
  if (status !== 0) throw new Error(`the bundle cannot be loaded: ${stderr}`);
}

/** Folders below node_modules that a user's installation has on this platform, too. */
function installedPackages(): readonly string[] {
  const { packages } = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as Lock;
  return Object.entries(packages)
    .filter(([name, { dev, link }]) => name.startsWith("node_modules/") && dev !== true && link !== true)
    .map(([name]) => name);
}

/** A package of node_modules, without what is only for those who build by it. One of another platform is not there. */
export function copyPackage(name: string, folder: string): void {
  const isWanted = (file: string): boolean =>
    !/\/(?:include|share|\.cache)$|\.(?:map|md|d\.[cm]?ts)$/.test(file) && !file.endsWith("/CHANGELOG");
  try {
    cpSync(path.join(root, name), path.join(folder, name), { recursive: true, filter: isWanted });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
