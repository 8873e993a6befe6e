// The roots that a workload starts with: a file of the platform. Later ones come from the control plane itself, with
// each certificate and by a stream of their own.
import { readFile } from "node:fs/promises";
import { parseCertificates } from "@tulle/identity";

/** How often a missing file is looked for. */
const lookEveryMs = 50;

export type ReadRoots =
  | { readonly ok: true; readonly pem: string }
  | { readonly ok: false; readonly isMissing: boolean; readonly reason: string };

/** The certificates of a PEM text, written so that equal roots are equal texts. */
export function parseRoots(
  text: string,
): { readonly ok: true; readonly pem: string } | { readonly ok: false; readonly message: string } {
  const parsed = parseCertificates(text);
  return parsed.ok ? { ok: true, pem: [...new Set(parsed.certificates.map(({ pem }) => pem))].join("") } : parsed;
}

export async function readTrustedRoots(file: string): Promise<ReadRoots> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? `${file} is not there` : `${file} cannot be read (${code ?? String(error)})`;
    return { ok: false, isMissing: code === "ENOENT", reason };
  }
  const parsed = parseRoots(text);
  return parsed.ok ? parsed : { ok: false, isMissing: false, reason: `${file}: ${parsed.message}` };
}

/**
 * Waits for the file while it is not there: agent and control plane may start together. @throws when it is not there in
 * `timeoutMs`, when it holds anything but certificates, or on abort
 */
export async function waitForTrustedRoots(file: string, timeoutMs: number, stop: AbortSignal): Promise<string> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const read = await readTrustedRoots(file);
    if (read.ok) return read.pem;
    if (!read.isMissing) throw new Error(`the trusted roots (TULLE_CA_ROOT_FILE): ${read.reason}`);
    if (performance.now() > deadline) {
      throw new Error(
        `the trusted roots (TULLE_CA_ROOT_FILE): ${read.reason} after ${Math.round(timeoutMs / 1000)} s; ` +
          "the control plane writes it when it has opened its authority: see its log, or unset the variable to go without TLS",
      );
    }
    stop.throwIfAborted();
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, lookEveryMs);
    await promise;
  }
}
