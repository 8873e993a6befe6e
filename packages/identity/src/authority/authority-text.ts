// The authority's state as a text: one, so that key, chain and roots change together or not at all.
import { privateKeyPem } from "../keys/private-key.ts";
import { type Certificate, parseCertificates } from "../x509/certificate.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { type AuthorityProblem, checkAuthority } from "./check-authority.ts";
import type { AuthorityState } from "./root-rotation.ts";

export type ParsedAuthority =
  | { readonly ok: true; readonly state: AuthorityState }
  | { readonly ok: false; readonly problems: readonly AuthorityProblem[] };

interface SavedMaterial {
  readonly certificate: string;
  readonly key: string;
  readonly chain: string;
  readonly roots: string;
}

type SavedState =
  | { readonly phase: "steady"; readonly signing: SavedMaterial }
  | {
      readonly phase: "introducing";
      readonly signing: SavedMaterial;
      readonly next: SavedMaterial;
      readonly signFromMs: number;
      readonly overlapMs: number;
      readonly keepUntilMs: number;
    }
  | {
      readonly phase: "retiring";
      readonly signing: SavedMaterial;
      readonly retiredRoots: string;
      readonly dropAtMs: number;
    };

const version = 1;

export function authorityText(state: AuthorityState): string {
  return `${JSON.stringify({ version, ...save(state) }, undefined, 2)}\n`;
}

/** Checked as anything from outside is: keys, chains, dates. `place` is where the text was, for messages. */
export function parseAuthority(text: string, place: string, nowMs: number): ParsedAuthority {
  let saved: (SavedState & { readonly version?: unknown }) | null;
  try {
    saved = JSON.parse(text) as typeof saved;
  } catch {
    return unreadable(place, "it is not JSON");
  }
  if (saved?.version !== version) return unreadable(place, `it is not of version ${version}`);
  try {
    return restore(saved, place, nowMs);
  } catch (error) {
    if (error instanceof TypeError) return unreadable(place, "parts of it are missing");
    throw error;
  }
}

function save(state: AuthorityState): SavedState {
  switch (state.phase) {
    case "steady":
      return { phase: "steady", signing: saveMaterial(state.signing) };
    case "introducing":
      return { ...state, signing: saveMaterial(state.signing), next: saveMaterial(state.next) };
    case "retiring":
      return { ...state, signing: saveMaterial(state.signing), retiredRoots: pemOf(state.retiredRoots) };
  }
}

function saveMaterial(material: AuthorityMaterial): SavedMaterial {
  return {
    certificate: material.certificate.pem,
    key: privateKeyPem(material.key),
    chain: pemOf(material.chain),
    roots: pemOf(material.roots),
  };
}

function restore(saved: SavedState, file: string, nowMs: number): ParsedAuthority {
  const problems: AuthorityProblem[] = [];
  const material = (part: SavedMaterial, name: string): AuthorityMaterial | undefined => {
    const at = (field: string) => `${file} ${name}.${field}`;
    const names = { certificate: at("certificate"), key: at("key"), chain: at("chain"), roots: at("roots") };
    const checked = checkAuthority(part, names, nowMs);
    if (checked.ok) return checked.material;
    problems.push(...checked.problems);
    return undefined;
  };
  const state = restoreState(saved, material, (message) => problems.push({ code: "unreadable", file, message }));
  return state === undefined || problems.length > 0 ? { ok: false, problems } : { ok: true, state };
}

function restoreState(
  saved: SavedState,
  material: (part: SavedMaterial, name: string) => AuthorityMaterial | undefined,
  report: (message: string) => void,
): AuthorityState | undefined {
  const signing = material(saved.signing, "signing");
  switch (saved.phase) {
    case "steady":
      return signing === undefined ? undefined : { phase: "steady", signing };
    case "introducing": {
      const next = material(saved.next, "next");
      const { signFromMs, overlapMs, keepUntilMs } = saved;
      if (![signFromMs, overlapMs, keepUntilMs].every(Number.isFinite)) report("the times of the change are missing");
      return signing === undefined || next === undefined
        ? undefined
        : { phase: "introducing", signing, next, signFromMs, overlapMs, keepUntilMs };
    }
    case "retiring": {
      const retired = parseCertificates(saved.retiredRoots);
      if (!retired.ok) report(`retiredRoots: ${retired.message}`);
      const { dropAtMs } = saved;
      if (!Number.isFinite(dropAtMs)) report("the time of the change is missing");
      return signing === undefined || !retired.ok
        ? undefined
        : { phase: "retiring", signing, retiredRoots: retired.certificates, dropAtMs };
    }
    default:
      report("its phase is none that is known");
      return undefined;
  }
}

function pemOf(certificates: readonly Certificate[]): string {
  return certificates.map((certificate) => certificate.pem).join("");
}

function unreadable(file: string, what: string): ParsedAuthority {
  return { ok: false, problems: [{ code: "unreadable", file, message: `${file}: ${what}` }] };
}
