// Opens the mesh's authority at start: what was kept, what the user brings along, or a new one.
import path from "node:path";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import { writeSecretFile } from "../secret-file.ts";
import { readAuthority, writeAuthority } from "./authority-file.ts";
import { CertificateAuthority } from "./certificate-authority.ts";
import type { AuthorityProblem } from "./check-authority.ts";
import { createAuthority } from "./create-authority.ts";
import { loadCacerts } from "./load-cacerts.ts";
import type { AuthorityState, RotationTimes } from "./root-rotation.ts";
import { trustedRoots } from "./root-rotation.ts";

export interface OpenAuthorityOptions {
  /** Holds `authority.json` (0600) and, for everyone to read, `root-cert.pem`. */
  readonly stateDir: string;
  readonly trustDomain: string;
  /** A folder with Istio's file names; its authority is used, and changed to when it differs from the one kept. */
  readonly cacertsDir?: string;
  /** Of a new authority's keys. */
  readonly algorithm?: KeyAlgorithm;
  readonly lifetimeMs?: number;
  readonly defaultTtlMs?: number;
  readonly maxTtlMs?: number;
  readonly rotation?: Partial<RotationTimes>;
  readonly now?: () => number;
}

export type OpenedAuthority =
  | { readonly ok: true; readonly authority: CertificateAuthority; readonly created: boolean }
  | { readonly ok: false; readonly problems: readonly AuthorityProblem[] };

/**
 * A kept authority that has become unusable is an error, never silently replaced: a new root would cut every workload
 * off. Only the user decides that, by removing the file.
 */
export async function openAuthority(options: OpenAuthorityOptions): Promise<OpenedAuthority> {
  const { stateDir, trustDomain, cacertsDir, now = Date.now } = options;
  const file = path.join(stateDir, "authority.json");
  const save = async (state: AuthorityState) => {
    await writeAuthority(file, state);
    const roots = trustedRoots(state).map((root) => root.pem);
    await writeSecretFile(path.join(stateDir, "root-cert.pem"), roots.join(""), 0o644);
  };
  const [kept, brought] = await Promise.all([
    readAuthority(file, now()),
    cacertsDir === undefined ? undefined : loadCacerts(cacertsDir, now()),
  ]);
  if (kept?.ok === false) return kept;
  if (brought?.ok === false) return brought;

  let state = kept?.state;
  const created = state === undefined;
  if (state === undefined) {
    const signing = brought?.material ?? (await createAuthority({ ...options, nowMs: now() }));
    state = { phase: "steady", signing };
    await save(state);
  }
  const authority = new CertificateAuthority({ ...options, trustDomain, state, save });
  if (brought !== undefined && !created) await authority.rotateTo(brought.material, options.rotation);
  await authority.advance();
  return { ok: true, authority, created };
}
