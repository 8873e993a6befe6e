// What the supervisor answers on its socket to who wants to run a command as a pod's container does.
import type { LocalPod } from "./pod/local-pod.ts";
import type { EntryAnswer, EntryRequest } from "./pod/pod-entry.ts";

/** What is no question gets no answer. */
export function enter(pods: readonly LocalPod[], asked: unknown): EntryAnswer | undefined {
  if (!isEntryRequest(asked)) return undefined;
  const pod = pods.find(({ name, plan }) => name === asked.pod && plan.namespace === asked.namespace);
  return pod === undefined ? { problem: `pod ${asked.pod}.${asked.namespace} is gone` } : pod.entry(asked.container);
}

function isEntryRequest(asked: unknown): asked is EntryRequest {
  if (typeof asked !== "object" || asked === null) return false;
  const { namespace, pod, container } = asked as Readonly<Record<keyof EntryRequest, unknown>>;
  const isNamed = typeof namespace === "string" && typeof pod === "string";
  return isNamed && (container === undefined || typeof container === "string");
}
