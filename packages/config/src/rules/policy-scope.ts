/**
 * Which workloads a security policy holds for: those of its namespace, or of every namespace when it lies in a root
 * namespace, that have the labels of its selector. Analysis and the control plane ask here alike.
 */
import { selects } from "./label-selector.ts";

/** Namespaces whose policies hold for all others: Tulle's own, and Istio's for manifests that were written for it. */
export const rootNamespaces: readonly string[] = ["tulle-system", "istio-system"];

/** Set to "true", a policy is evaluated and counted and decides nothing (Istio's name, and the same under ours). */
export const dryRunAnnotations: readonly string[] = ["istio.io/dry-run", "tulle.io/dry-run"];

export interface PolicyScope {
  readonly namespace: string;
  /** Empty for all workloads. */
  readonly matchLabels: Readonly<Record<string, string>>;
}

interface PolicyResource {
  readonly metadata: { readonly namespace: string };
  readonly spec: {
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  };
}

export function policyScope({ metadata, spec }: PolicyResource): PolicyScope {
  return { namespace: metadata.namespace, matchLabels: spec.selector?.matchLabels ?? {} };
}

export function policyHolds(
  { namespace, matchLabels }: PolicyScope,
  workload: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
): boolean {
  if (namespace !== workload.namespace && !rootNamespaces.includes(namespace)) return false;
  return selects(matchLabels, workload.labels);
}

/** Go's spellings of true, which is how Istio reads the annotation. */
export function isDryRun(annotations: Readonly<Record<string, string>> | undefined): boolean {
  return dryRunAnnotations.some((name) => /^(1|t|T|true|TRUE|True)$/.test(annotations?.[name] ?? ""));
}
