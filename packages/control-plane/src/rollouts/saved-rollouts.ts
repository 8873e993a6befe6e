// Where roll-outs stand, kept from one start to the next: written before more goes to a canary, so that a control plane
// that is killed goes on from there, or from a step before.
import { parseResource } from "@tulle/config";
import type { KeptTexts } from "../state/state-folder.ts";
import type { RolloutState } from "./rollout-machine.ts";

/** By `<namespace>/<name>`. */
export type RolloutStates = ReadonlyMap<string, RolloutState>;

export interface SavedRollouts {
  readonly saved: RolloutStates;
  /** The newest that there are: of several control planes another may have written them. */
  read(): Promise<RolloutStates>;
  /** Resolves once it is on disk. */
  save(states: RolloutStates): Promise<void>;
  /** Calls back when another may have written. Returns how to end that. */
  follow(listener: () => void): () => void;
}

const fileName = "rollouts.json";

type Texts = Pick<KeptTexts, "read" | "write" | "placeOf" | "follow">;

/** What cannot be read is told, and its roll-outs have not been started. */
export async function openSavedRollouts(texts: Texts, onProblem: (reason: string) => void): Promise<SavedRollouts> {
  const read = async (): Promise<RolloutStates> => parse((await texts.read(fileName))?.text, texts, onProblem);
  const save = (states: RolloutStates): Promise<void> =>
    texts.write(fileName, `${JSON.stringify(Object.fromEntries(states), undefined, 1)}\n`);
  return { saved: await read(), read, save, follow: (listener) => texts.follow?.(listener) ?? (() => undefined) };
}

function parse(text: string | undefined, texts: Texts, onProblem: (reason: string) => void): RolloutStates {
  const saved = new Map<string, RolloutState>();
  try {
    for (const [key, value] of Object.entries(JSON.parse(text ?? "{}") as Readonly<Record<string, unknown>>)) {
      const state = savedState(value);
      if (state === undefined) onProblem(`${texts.placeOf(fileName)} holds no state of ${key}`);
      else saved.set(key, state);
    }
  } catch (error) {
    onProblem(`${texts.placeOf(fileName)}: ${String(error)}`);
  }
  return saved;
}

const outcomes: ReadonlySet<unknown> = new Set(["running", "completed", "aborted"]);

/** The spec is checked as any manifest is; the rest is of our own making, and was written in one step. */
function savedState(value: unknown): RolloutState | undefined {
  if (!isObject(value) || !("spec" in value)) return undefined;
  const document = {
    apiVersion: "rollouts.tulle.io/v1alpha1",
    kind: "Rollout",
    metadata: { name: "saved" },
    spec: value.spec,
  };
  const { resource } = parseResource(document);
  const state = value as RolloutState;
  const isWhole =
    outcomes.has(state.outcome) &&
    [state.revision, state.step, state.stepBeganAtMs, state.startedAtMs, state.weight].every(Number.isFinite) &&
    isObject(state.measured) &&
    Object.values(state.measured).every(isObject) &&
    Array.isArray(state.history);
  return resource?.kind === "Rollout" && isWhole ? { ...state, spec: resource.spec } : undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
