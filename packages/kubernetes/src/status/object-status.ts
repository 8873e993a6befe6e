// What the status of a resource is to say: whether it is accepted, how many proxies have it, and what the analysis
// finds, in Istio's form (istio.io/api, IstioStatus). What has not changed keeps its time, and is not written again.
import { isDeepStrictEqual } from "node:util";
import { type Finding, findingCodes } from "@tulle/config";

/** What is known of a resource. */
export interface ObjectFacts {
  readonly generation: number;
  readonly isRead: boolean;
  readonly isShadowed: boolean;
  /** Why it is set aside; empty for one that is not. */
  readonly setAside: readonly Finding[];
  /** All of it. */
  readonly findings: readonly Finding[];
  /** What proxies refuse of it, in words. */
  readonly refusals: readonly string[];
  /** Of the newest change; undefined where none is known, or it means nothing for a proxy. */
  readonly sync: ProxiesInSync | undefined;
  /** Fields of a kind of its own. */
  readonly more: Readonly<Record<string, unknown>>;
}

export interface ProxiesInSync {
  readonly connected: number;
  readonly inSync: number;
  readonly isDone: boolean;
}

interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration: number;
}

export interface ObjectStatus {
  readonly observedGeneration: number;
  readonly conditions: readonly Condition[];
  readonly validationMessages?: readonly object[];
}

/** Of a status; a resource may have as many faults as it has fields. */
const maxMessages = 20;
const maxMessageCharacters = 1_000;

type Verdict = Pick<Condition, "type" | "status" | "reason" | "message">;

/** `before` is what stands there now, whoever wrote it. */
export function objectStatus(facts: ObjectFacts, before: unknown, nowMs: number): ObjectStatus {
  const known = conditionsIn(before);
  const conditions = [accepted(facts), reconciled(facts)].flatMap((verdict): readonly Condition[] => {
    if (verdict === undefined) return [];
    const old = known.find(({ type }) => type === verdict.type);
    const isSame = old?.status === verdict.status;
    const lastTransitionTime = isSame ? old.lastTransitionTime : new Date(nowMs).toISOString().replace(/\.\d+Z$/, "Z");
    return [{ ...verdict, lastTransitionTime, observedGeneration: facts.generation }];
  });
  // Nobody counts any more who had an older change: what was said of this very version stays.
  const kept = known.filter(
    ({ type, observedGeneration }) =>
      type === "Reconciled" &&
      observedGeneration === facts.generation &&
      !facts.isShadowed &&
      !conditions.some((each) => each.type === type),
  );
  const messages = facts.findings.slice(0, maxMessages).map(validationMessage);
  return {
    ...facts.more,
    observedGeneration: facts.generation,
    conditions: [...conditions, ...kept],
    ...(messages.length === 0 ? {} : { validationMessages: messages }),
  };
}

/** Whether it says the same; fields that others have put there are theirs. */
export function saysSame(before: unknown, next: ObjectStatus): boolean {
  if (typeof before !== "object" || before === null) return false;
  const there = before as Readonly<Record<string, unknown>>;
  const wanted = Object.entries({ validationMessages: undefined, ...next });
  return wanted.every(([name, value]) => isDeepStrictEqual(there[name], value));
}

function accepted({ isRead, isShadowed, setAside, findings }: ObjectFacts): Verdict {
  const type = "Accepted";
  if (isShadowed) {
    const message = "an object of Tulle's group has the same name, and counts in its place";
    return { type, status: "False", reason: "Shadowed", message };
  }
  const faults = isRead ? setAside : findings.filter(({ severity }) => severity === "error");
  if (isRead && faults.length === 0) return { type, status: "True", reason: "Accepted", message: "" };
  return {
    type,
    status: "False",
    reason: "Invalid",
    message: shortened(faults.map(({ message }) => message).join("; ")),
  };
}

function reconciled({ refusals, sync, isShadowed }: ObjectFacts): Verdict | undefined {
  const type = "Reconciled";
  if (isShadowed) return undefined;
  if (refusals.length > 0) {
    return { type, status: "False", reason: "RefusedByProxies", message: shortened(refusals.join("; ")) };
  }
  if (sync === undefined) return undefined;
  const { connected, inSync, isDone } = sync;
  const message = `${inSync} of ${connected} proxies have it`;
  if (isDone && inSync === connected) return { type, status: "True", reason: "UpToDate", message };
  return { type, status: "False", reason: isDone ? "NotAll" : "Waiting", message };
}

function validationMessage({ code, severity, path, message }: Finding): object {
  const { name } = findingCodes[code];
  const where = path === undefined ? "" : `${path}: `;
  return { type: { code, name }, level: severity.toUpperCase(), message: shortened(`${where}${message}`) };
}

export function conditionsIn(status: unknown): readonly Condition[] {
  if (typeof status !== "object" || status === null || !("conditions" in status)) return [];
  const { conditions } = status;
  return Array.isArray(conditions) ? (conditions as readonly Condition[]) : [];
}

function shortened(text: string): string {
  return text.length <= maxMessageCharacters ? text : `${text.slice(0, maxMessageCharacters)}…`;
}
