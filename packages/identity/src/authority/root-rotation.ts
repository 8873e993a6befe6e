// How an authority gives way to another one without a refused handshake: what is trusted changes before and after what
// signs.
import type { Certificate } from "../x509/certificate.ts";
import type { AuthorityMaterial } from "./authority-material.ts";

/**
 * - `steady`: one authority signs, and its roots are trusted.
 * - `introducing`: the next roots are trusted already, the old authority still signs; ends at `signFromMs`. A
 *   certificate of the next authority would be refused by everyone who has not yet heard of its root.
 * - `retiring`: the next authority signs, the old roots are still trusted; ends at `dropAtMs`, when no certificate of
 *   the old authority is valid any more.
 */
export type AuthorityState =
  | { readonly phase: "steady"; readonly signing: AuthorityMaterial }
  | {
      readonly phase: "introducing";
      readonly signing: AuthorityMaterial;
      readonly next: AuthorityMaterial;
      readonly signFromMs: number;
      readonly overlapMs: number;
      /** Older roots that are still retiring are promised until then; 0 when there are none. */
      readonly keepUntilMs: number;
    }
  | {
      readonly phase: "retiring";
      readonly signing: AuthorityMaterial;
      readonly retiredRoots: readonly Certificate[];
      readonly dropAtMs: number;
    };

export interface RotationTimes {
  /** From the first sight of the new roots to the first certificate of the new authority. */
  readonly introduceMs: number;
  /** From there to the end of the old roots. */
  readonly overlapMs: number;
}

/**
 * Starts the change to another authority. One whose roots every peer has had time to hear of (a renewed intermediate)
 * signs at once; one that comes before a new root signs takes the place of the one that would have been next. Old roots
 * of an earlier change stay trusted until the end of this one.
 */
export function beginRotation(
  state: AuthorityState,
  next: AuthorityMaterial,
  times: RotationTimes,
  nowMs: number,
): AuthorityState {
  // The same object: whoever is told of each change asks again and again for what was given.
  if (sameMaterial(state.phase === "introducing" ? state.next : state.signing, next)) return state;
  const heardOf = rootsHeardOf(state);
  if (isSubset(next.roots, heardOf)) return retire(state, next, nowMs + times.overlapMs);
  if (state.phase === "introducing" && isSubset(next.roots, state.next.roots)) return { ...state, next };
  return {
    phase: "introducing",
    // What the old authority hands out until then is all that somebody still relies on.
    signing: { ...state.signing, roots: heardOf },
    next,
    signFromMs: nowMs + times.introduceMs,
    overlapMs: times.overlapMs,
    keepUntilMs: promisedUntilMs(state),
  };
}

/** The state at a time: the same object while no phase has ended. */
export function advanceRotation(state: AuthorityState, nowMs: number): AuthorityState {
  if (state.phase === "introducing" && nowMs >= state.signFromMs) {
    // Counted from now: a control plane that was down at `signFromMs` has signed with the old authority until just now.
    return advanceRotation(retire(state, state.next, nowMs + state.overlapMs), nowMs);
  }
  if (state.phase === "retiring" && nowMs >= state.dropAtMs) return { phase: "steady", signing: state.signing };
  return state;
}

/** All roots that peers are to trust, each once; those of the signing authority first. */
export function trustedRoots(state: AuthorityState): readonly Certificate[] {
  switch (state.phase) {
    case "steady":
      return state.signing.roots;
    case "introducing":
      return distinct([...state.signing.roots, ...state.next.roots]);
    case "retiring":
      return distinct([...state.signing.roots, ...state.retiredRoots]);
  }
}

/** When the next phase begins; undefined when none is due. */
export function rotationDueMs(state: AuthorityState): number | undefined {
  switch (state.phase) {
    case "steady":
      return undefined;
    case "introducing":
      return state.signFromMs;
    case "retiring":
      return state.dropAtMs;
  }
}

function retire(state: AuthorityState, signing: AuthorityMaterial, dropAtMs: number): AuthorityState {
  const retiredRoots = rootsHeardOf(state).filter((root) => !isSubset([root], signing.roots));
  if (retiredRoots.length === 0) return { phase: "steady", signing };
  return { phase: "retiring", signing, retiredRoots, dropAtMs: Math.max(dropAtMs, promisedUntilMs(state)) };
}

/** A later change with a shorter overlap takes nothing from those who rely on an earlier one. */
function promisedUntilMs(state: AuthorityState): number {
  if (state.phase === "retiring") return state.dropAtMs;
  return state.phase === "introducing" ? state.keepUntilMs : 0;
}

/** Nobody has signed under a root that is only being introduced: it is given up as easily as it came. */
function rootsHeardOf(state: AuthorityState): readonly Certificate[] {
  return state.phase === "introducing" ? state.signing.roots : trustedRoots(state);
}

function sameMaterial(one: AuthorityMaterial, other: AuthorityMaterial): boolean {
  return (
    one.certificate.der.equals(other.certificate.der) &&
    isSubset(one.roots, other.roots) &&
    isSubset(other.roots, one.roots)
  );
}

function isSubset(some: readonly Certificate[], all: readonly Certificate[]): boolean {
  return some.every((certificate) => all.some((other) => other.der.equals(certificate.der)));
}

function distinct(certificates: readonly Certificate[]): readonly Certificate[] {
  return certificates.filter((certificate, index) => !isSubset([certificate], certificates.slice(0, index)));
}
