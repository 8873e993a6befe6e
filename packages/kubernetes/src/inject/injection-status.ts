// The annotation that says what was injected, in Istio's form, so that nothing is injected twice.
import { injectedContainers } from "../names.ts";
import { isPlainObject } from "./plain-object.ts";
import { allContainers, annotationsOf, type Pod } from "./pod.ts";

/** Ours, and Istio's: a pod has one proxy, whoever has injected it. */
export const proxyNames: readonly string[] = [injectedContainers.proxy, "istio-proxy"];

export const statusAnnotation = "sidecar.istio.io/status";

export interface InjectionStatus {
  readonly initContainers: readonly string[] | null;
  readonly containers: readonly string[] | null;
  readonly volumes: readonly string[] | null;
  readonly imagePullSecrets: readonly string[] | null;
  readonly revision: string;
}

export type FoundStatus =
  | { readonly kind: "none" }
  /** What it names is there. */
  | { readonly kind: "injected"; readonly containers: readonly string[] }
  /** Somebody wrote or copied it: what it names is not there. */
  | { readonly kind: "untrue"; readonly problem: string };

/** The annotation is anybody's to write, and counts only for containers that are there. */
export function injectionStatus(pod: Pod): FoundStatus {
  const text = annotationsOf(pod)[statusAnnotation];
  if (text === undefined) return { kind: "none" };
  const status = parse(text);
  if (status === undefined) return { kind: "untrue", problem: `the annotation ${statusAnnotation} is no status` };
  const names = [...listOf(status["initContainers"]), ...listOf(status["containers"])];
  const there = new Set(allContainers(pod).map(({ name }) => name));
  if (!names.some((name) => proxyNames.includes(name)))
    return { kind: "untrue", problem: `the annotation ${statusAnnotation} names no proxy` };
  const missing = names.find((name) => !there.has(name));
  if (missing === undefined) return { kind: "injected", containers: names };
  return {
    kind: "untrue",
    problem: `the annotation ${statusAnnotation} names the container ${JSON.stringify(missing)}, which is not there`,
  };
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
