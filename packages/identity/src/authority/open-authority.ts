// Opens the mesh's authority at start: what was kept, what the user brings along, or a new one.
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import type { AuthorityStorage } from "./authority-storage.ts";
import { authorityText, type ParsedAuthority, parseAuthority } from "./authority-text.ts";
import { CertificateAuthority } from "./certificate-authority.ts";
import type { AuthorityProblem } from "./check-authority.ts";
import { createAuthority } from "./create-authority.ts";
import type { AuthorityState, RotationTimes } from "./root-rotation.ts";
import { trustedRoots } from "./root-rotation.ts";

export interface OpenAuthorityOptions {
  /** An operator's authority that lies there is used, and changed to when it differs from the one kept. */
  readonly storage: AuthorityStorage;
  readonly trustDomain: string;
  /** Of a new authority's keys. */
  readonly algorithm?: KeyAlgorithm;
  readonly lifetimeMs?: number;
  readonly defaultTtlMs?: number;
  readonly maxTtlMs?: number;
  readonly rotation?: Partial<RotationTimes>;
  readonly now?: () => number;
}

export type OpenedAuthority =
  | {
      readonly ok: true;
      readonly authority: CertificateAuthority;
      readonly created: boolean;
      /** By the operator. */
      readonly isBroughtAlong: boolean;
    }
  | { readonly ok: false; readonly problems: readonly AuthorityProblem[] };

/**
 * A kept authority that has become unusable is an error, never silently replaced: a new root would cut every workload
 * off. Only the user decides that, by removing what is kept. Of several that start at once one makes the authority; the
 * others take it.
 */
export async function openAuthority(options: OpenAuthorityOptions): Promise<OpenedAuthority> {
  const { storage, trustDomain, now = Date.now } = options;
  const [kept, brought] = await Promise.all([readState(storage, now()), storage.readGiven(now())]);
  if (kept?.ok === false) return kept;
  if (brought?.ok === false) return brought;

  const save = async (next: AuthorityState): Promise<AuthorityState | undefined> => {
    const roots = trustedRoots(next).map((root) => root.pem);
    if (await storage.write(authorityText(next), roots.join(""))) return undefined;
    return stateOr(await readState(storage, now()));
  };
  let state = kept?.state;
  let created = false;
  if (state === undefined) {
    const signing = brought?.material ?? (await createAuthority({ ...options, nowMs: now() }));
    const first: AuthorityState = { phase: "steady", signing };
    const other = await save(first);
    created = other === undefined;
    state = other ?? first;
  }
  const read = async (): Promise<AuthorityState | undefined> => stateOr(await readState(storage, now()));
  const authority = new CertificateAuthority({ ...options, trustDomain, state, save, read });
  if (brought !== undefined && !created) await authority.rotateTo(brought.material, options.rotation);
  await storage.keepRoots?.(authority.trustBundlePem);
  return { ok: true, authority, created, isBroughtAlong: brought !== undefined };
}

/** Undefined where there is none. */
async function readState(storage: AuthorityStorage, nowMs: number): Promise<ParsedAuthority | undefined> {
  const { place } = storage;
  try {
    const text = await storage.read();
    return text === undefined ? undefined : parseAuthority(text, place, nowMs);
  } catch (error) {
    return { ok: false, problems: [{ code: "unreadable", file: place, message: (error as Error).message }] };
  }
}

/** @throws where what another has written is no good */
function stateOr(parsed: ParsedAuthority | undefined): AuthorityState | undefined {
  if (parsed?.ok === false) throw new Error(parsed.problems.map(({ message }) => message).join("; "));
  return parsed?.state;
}
