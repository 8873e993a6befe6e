// How many pods of a Deployment to start and which to let go, so that there are never fewer ready ones than wanted.

/** A pod as the rollout sees it. */
export interface RolloutPod {
  readonly name: string;
  /** Whether it is as the present template says, and nobody wants it replaced. */
  readonly isCurrent: boolean;
  readonly ready: boolean;
  /** On its way out already. */
  readonly leaving: boolean;
}

export interface RolloutStep {
  /** Pods of the present template to start now. */
  readonly start: number;
  /** Names of pods that may leave now. */
  readonly remove: readonly string[];
}

/**
 * Kubernetes' RollingUpdate with its default surge of a quarter (at least one pod) and nothing unavailable: old pods
 * that are not ready leave at once, ready ones only when enough others are ready.
 */
export function planRollout(replicas: number, pods: readonly RolloutPod[]): RolloutStep {
  const staying = pods.filter((pod) => !pod.leaving);
  const present = staying.filter((pod) => pod.isCurrent);
  const old = staying.filter((pod) => !pod.isCurrent);
  const surge = replicas === 0 ? 0 : Math.max(1, Math.ceil(replicas / 4));
  const room = replicas + (old.length > 0 ? surge : 0) - staying.length;
  const start = Math.max(0, Math.min(replicas - present.length, room));

  // Too many of the present template: those that are not ready go first, then the youngest.
  const excess = [...present]
    .sort((a, b) => Number(a.ready) - Number(b.ready))
    .slice(0, Math.max(0, present.length - replicas));
  const unreadyOld = old.filter((pod) => !pod.ready);
  const readyPresent = present.filter((pod) => pod.ready).length;
  const readyOld = old.filter((pod) => pod.ready);
  const spare = Math.max(0, readyPresent + readyOld.length - replicas);
  const remove = [...excess, ...unreadyOld, ...readyOld.slice(0, spare)];
  return { start, remove: remove.map((pod) => pod.name) };
}
