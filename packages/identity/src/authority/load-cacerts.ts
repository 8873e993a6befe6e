// Bring your own authority: a folder with the file names of Istio's `cacerts` secret.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { type AuthorityProblem, checkAuthority, type CheckedAuthority } from "./check-authority.ts";

export const cacertsFiles = {
  certificate: "ca-cert.pem",
  key: "ca-key.pem",
  roots: "root-cert.pem",
  /** May be absent where a root has signed ca-cert.pem directly. */
  chain: "cert-chain.pem",
} as const;

/** Reads and checks the folder; nothing is kept, so that it may be read again when its files change. */
export async function loadCacerts(folder: string, nowMs: number): Promise<CheckedAuthority> {
  const problems: AuthorityProblem[] = [];
  const read = async (file: string, required: boolean): Promise<string> => {
    try {
      return await readFile(path.join(folder, file), "utf8");
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error);
      const absent = code === "ENOENT";
      if (required || !absent) {
        const message = `${file}: ${absent ? "the file is missing" : `the file cannot be read (${code})`} in ${folder}`;
        problems.push({ code: absent ? "missing" : "unreadable", file, message });
      }
      return "";
    }
  };
  const [certificate, key, roots, chain] = await Promise.all([
    read(cacertsFiles.certificate, true),
    read(cacertsFiles.key, true),
    read(cacertsFiles.roots, true),
    read(cacertsFiles.chain, false),
  ]);
  if (problems.length > 0) {
    // In the order of the names, whichever read ended first.
    const names: readonly string[] = Object.values(cacertsFiles);
    return { ok: false, problems: problems.sort((a, b) => names.indexOf(a.file) - names.indexOf(b.file)) };
  }
  return checkAuthority({ certificate, key, roots, chain }, cacertsFiles, nowMs);
}
