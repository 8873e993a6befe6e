/**
 * A pod → the pod with its proxy, or why it stays as it is. The webhook of a cluster and `tulle inject` both ask here;
 * docs/injection.md says the same to users.
 */
import { explainInjection, type MeshConfig, templateNames } from "@tulle/config";
import { type BuiltPod, injectGateway, injectSidecar } from "./build-pod.ts";
import { injectionStatus } from "./injection-status.ts";
import { NotMergeable } from "./merge-pods.ts";
import { jsonPatch, type PatchOperation } from "./json-patch.ts";
import { annotationsOf, labelsOf, type Pod, readPod, type Texts } from "./pod.ts";
import { readSettings } from "./pod-settings.ts";
import { completeProbes } from "./complete-probes.ts";
import { applyTemplate, ownTemplates, templateProblem } from "./templates.ts";
import type { InjectionValues } from "./values.ts";
import { type Workload, workloadOf } from "./workload.ts";

export interface InjectionRequest {
  /** As it was parsed; whatever somebody has sent. */
  readonly pod: unknown;
  readonly namespace: { readonly name: string; readonly labels: Texts };
  readonly mesh: Pick<MeshConfig, "enablePrometheusMerge" | "defaultConfig">;
  readonly values: InjectionValues;
  /** Names that this control plane answers to; all when missing. */
  readonly revisions?: ReadonlySet<string>;
  /** Of files: whoever has them injected means it, and namespaces need no label. */
  readonly injectsUnlabelled?: boolean;
  /** What a template is of; the pod's owner when missing. */
  readonly workload?: Workload;
}

/** Warnings and problems are sentences without a full stop; `reason` ends one behind "because". */
export type InjectionResult =
  | {
      readonly outcome: "injected";
      readonly pod: Pod;
      readonly patch: readonly PatchOperation[];
      readonly reason: string;
      readonly warnings: readonly string[];
    }
  | { readonly outcome: "passed"; readonly reason: string; readonly warnings: readonly string[] }
  | { readonly outcome: "refused"; readonly problems: readonly string[]; readonly warnings: readonly string[] };

export function injectPod(request: InjectionRequest): InjectionResult {
  const read = readPod(request.pod);
  if (!read.ok) return { outcome: "refused", problems: read.problems, warnings: [] };
  const { pod } = read;
  const { namespace, revisions, injectsUnlabelled } = request;
  const decision = explainInjection({
    namespace: namespace.name,
    namespaceLabels: namespace.labels,
    podLabels: labelsOf(pod),
    podAnnotations: annotationsOf(pod),
    hostNetwork: pod.spec["hostNetwork"] === true,
    ...(revisions === undefined ? {} : { revisions }),
    ...(injectsUnlabelled === undefined ? {} : { injectsUnlabelled }),
  });
  const { reason } = decision;
  const warnings = [...decision.warnings];
  if (decision.injection === "none") return { outcome: "passed", reason, warnings };
  if (isForWindows(pod)) return { outcome: "passed", reason: "it runs on Windows", warnings };
  const status = injectionStatus(pod);
  if (status.kind === "injected") {
    const completed = completeProbes(pod, status.containers);
    if (completed === undefined) return { outcome: "passed", reason: "it has a proxy already", warnings };
    return injected(pod, completed, "containers have come since it was injected", warnings);
  }
  if (status.kind === "untrue") warnings.push(`${status.problem}: the pod is injected`);
  return build(pod, request, reason, warnings);
}

function build(pod: Pod, request: InjectionRequest, reason: string, warnings: string[]): InjectionResult {
  const { values } = request;
  const names = [...new Set(templateNames(annotationsOf(pod)) ?? values.defaultTemplates)];
  const { settings, ...told } = readSettings(pod, values);
  const problems = [...told.problems];
  warnings.push(...told.warnings);
  for (const name of names) {
    const problem = templateProblem(name, values.templates);
    if (problem !== undefined) problems.push(problem);
  }
  if (problems.length > 0) return { outcome: "refused", problems, warnings };
  const parts = {
    pod,
    namespace: request.namespace.name,
    mesh: request.mesh,
    values,
    settings,
    workload: request.workload ?? workloadOf(pod),
  };
  const makes = names.includes("gateway") ? injectGateway : names.includes("sidecar") ? injectSidecar : undefined;
  let made: BuiltPod;
  try {
    made = makes?.(parts) ?? { pod, proxyName: undefined, problems: [], warnings: [] };
  } catch (error) {
    if (!(error instanceof NotMergeable)) throw error;
    return { outcome: "refused", problems: [`its own container for the proxy: ${error.message}`], warnings };
  }
  warnings.push(...made.warnings);
  if (made.problems.length > 0) return { outcome: "refused", problems: made.problems, warnings };
  let result = made.pod;
  for (const name of names.filter((each) => !(ownTemplates as readonly string[]).includes(each))) {
    try {
      result = applyTemplate(result, values.templates[name]!, made.proxyName);
    } catch (error) {
      return {
        outcome: "refused",
        problems: [`the template ${JSON.stringify(name)} ${(error as Error).message}`],
        warnings,
      };
    }
  }
  return injected(pod, result, reason, warnings);
}

function injected(before: Pod, after: Pod, reason: string, warnings: readonly string[]): InjectionResult {
  return { outcome: "injected", pod: after, patch: jsonPatch(before, after), reason, warnings };
}

function isForWindows({ spec }: Pod): boolean {
  const { os, nodeSelector } = spec as {
    os?: { name?: unknown } | null;
    nodeSelector?: Record<string, unknown> | null;
  };
  return os?.name === "windows" || nodeSelector?.["kubernetes.io/os"] === "windows";
}
