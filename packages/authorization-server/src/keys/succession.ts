// How signing keys follow one another, as a pure decision on what lies in the store: which steps are due now, and which
// ones an operator's "now" asks for. `advanceKeys` takes them under a lock, so that several processes take each once.
import type { Config } from "../config/config.ts";
import type { Database } from "../store/database.ts";
import type { SigningAlgorithm } from "./jwt.ts";
import { signingAlgorithms } from "./jwt.ts";
import type { KeyLives, MakeKeyPair, NewKey, StoredKey } from "./key-store.ts";
import {
  activateKey,
  insertKey,
  keyState,
  lengthenKeyLives,
  listKeys,
  removeKey,
  retireKey,
  sealedKey,
} from "./key-store.ts";

export interface KeyPolicy extends KeyLives {
  readonly rotationMs: number;
  /** How long a key is published before it signs: at least two refreshes of the slowest reader of the key set. */
  readonly publishAheadMs: number;
}

const clockSkewMs = 60_000;

export function keyPolicy({ keyRotationMs, keyPublishAheadMs, lifetimes }: Config): KeyPolicy {
  const tokenLifeMs = Math.max(lifetimes.accessTokenMs, lifetimes.idTokenMs) + clockSkewMs;
  return {
    rotationMs: keyRotationMs,
    publishAheadMs: keyPublishAheadMs,
    tokenLifeMs,
    hintLifeMs: Math.max(tokenLifeMs, lifetimes.sessionMs + clockSkewMs),
  };
}

/** Of one algorithm; rotating by hand again and again must not fill the key set or the store. */
export const maxRetiredKeys = 100;

export type KeyStep =
  | { readonly step: "make"; readonly algorithm: SigningAlgorithm; readonly active: boolean; readonly lives: KeyLives }
  | { readonly step: "activate"; readonly id: string }
  | { readonly step: "retire"; readonly id: string }
  | { readonly step: "lengthen"; readonly id: string; readonly lives: KeyLives }
  | { readonly step: "remove"; readonly id: string };

interface Succession {
  readonly active: StoredKey | undefined;
  readonly next: StoredKey | undefined;
  /** The one that retired last first. */
  readonly retired: readonly StoredKey[];
}

function successionOf(keys: readonly StoredKey[], algorithm: SigningAlgorithm): Succession {
  const own = keys.filter((key) => key.algorithm === algorithm);
  const live = own.filter((key) => key.retiredAtMs === undefined);
  const retired = own.filter((key) => key.retiredAtMs !== undefined);
  return {
    active: live.find((key) => key.activatedAtMs !== undefined),
    next: live.find((key) => key.activatedAtMs === undefined),
    retired: retired.sort((a, b) => b.retiredAtMs! - a.retiredAtMs!),
  };
}

/** Empty when all is as the policy wants it. */
export function stepsDue(keys: readonly StoredKey[], policy: KeyPolicy, nowMs: number): readonly KeyStep[] {
  const steps: KeyStep[] = [];
  const lives: KeyLives = { tokenLifeMs: policy.tokenLifeMs, hintLifeMs: policy.hintLifeMs };
  for (const algorithm of signingAlgorithms) {
    const { active, next, retired } = successionOf(keys, algorithm);
    // The first keys of a store sign at once. An algorithm that is new to a store is published first, like any next
    // key.
    const isFirst = keys.length === 0;
    const isPublished = next !== undefined && nowMs - next.createdAtMs >= policy.publishAheadMs;
    const isDue = active === undefined || nowMs - active.activatedAtMs! >= policy.rotationMs;
    const promote = isPublished && isDue;
    if (promote && active !== undefined) steps.push({ step: "retire", id: active.id });
    if (promote) steps.push({ step: "activate", id: next.id });
    if (promote || next === undefined) steps.push({ step: "make", algorithm, active: isFirst, lives });
    for (const key of [active, next]) {
      if (key === undefined) continue;
      const longer = longest(key, lives);
      if (longer.tokenLifeMs !== key.tokenLifeMs || longer.hintLifeMs !== key.hintLifeMs)
        steps.push({ step: "lengthen", id: key.id, lives: longer });
    }
    for (const [index, key] of retired.entries())
      if (index >= maxRetiredKeys || keyState(key, nowMs) === "over") steps.push({ step: "remove", id: key.id });
  }
  return steps;
}

function longest(a: KeyLives, b: KeyLives): KeyLives {
  return {
    tokenLifeMs: Math.max(a.tokenLifeMs, b.tokenLifeMs),
    hintLifeMs: Math.max(a.hintLifeMs, b.hintLifeMs),
  };
}

/**
 * An operator's wish: what is next signs now, for each algorithm that the store has, with the lives of its predecessor.
 */
export function stepsToRotate(keys: readonly StoredKey[]): readonly KeyStep[] {
  const steps: KeyStep[] = [];
  for (const algorithm of signingAlgorithms) {
    const { active, next } = successionOf(keys, algorithm);
    const before = active ?? next;
    if (before === undefined) continue;
    const lives: KeyLives = { tokenLifeMs: before.tokenLifeMs, hintLifeMs: before.hintLifeMs };
    if (active !== undefined) steps.push({ step: "retire", id: active.id });
    if (next === undefined) steps.push({ step: "make", algorithm, active: true, lives });
    else steps.push({ step: "activate", id: next.id });
    steps.push({ step: "make", algorithm, active: false, lives });
  }
  return steps;
}

export type KeyPlan = (keys: readonly StoredKey[], nowMs: number) => readonly KeyStep[];

const maxAttempts = 5;

/** Takes all steps of the plan in one transaction. Answers false when there were none. */
export async function advanceKeys(
  database: Database,
  plan: KeyPlan,
  keyMaking: { readonly encryptionKey: Buffer; readonly makeKeyPair: MakeKeyPair },
): Promise<boolean> {
  let steps = await database.read(async (reader) => plan(await listKeys(reader), reader.nowMs));
  for (let attempt = 0; attempt < maxAttempts && steps.length > 0; attempt += 1) {
    // Outside of any transaction, since making an RSA key takes a good part of a second.
    const made: NewKey[] = [];
    for (const step of steps) {
      if (step.step !== "make") continue;
      made.push(sealedKey(step.algorithm, await keyMaking.makeKeyPair(step.algorithm), keyMaking.encryptionKey));
    }
    const missed = await takeSteps(database, plan, made);
    if (missed === undefined) return true;
    steps = missed;
  }
  return false;
}

/** Undefined when they were taken; what they have become when another process has changed them meanwhile. */
async function takeSteps(
  database: Database,
  plan: KeyPlan,
  made: readonly NewKey[],
): Promise<readonly KeyStep[] | undefined> {
  return database.transaction(async (transaction) => {
    await transaction.lock("signing keys");
    const steps = plan(await listKeys(transaction), transaction.nowMs);
    const spares = [...made];
    const taken = steps.map((step) => {
      if (step.step !== "make") return { step, spare: undefined };
      const index = spares.findIndex((key) => key.algorithm === step.algorithm);
      return { step, spare: index < 0 ? undefined : spares.splice(index, 1)[0] };
    });
    if (taken.some(({ step, spare }) => step.step === "make" && spare === undefined)) return steps;
    for (const { step, spare } of taken) {
      switch (step.step) {
        case "make":
          await insertKey(transaction, spare!, { ...step.lives, active: step.active });
          break;
        case "activate":
          await activateKey(transaction, step.id);
          break;
        case "retire":
          await retireKey(transaction, step.id);
          break;
        case "lengthen":
          await lengthenKeyLives(transaction, step.id, step.lives);
          break;
        case "remove":
          await removeKey(transaction, step.id);
          break;
        default:
          throw new Error(`no such step: ${String(step satisfies never)}`);
      }
    }
    return undefined;
  });
}
