// A pod as injection sees it: named fields for what it reads and writes, and everything else as it came. What callers
// send is checked here once; `readPod` tells what is not as a pod has to be.
import { isPlainObject, type PlainObject } from "./plain-object.ts";

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly [field: string]: unknown;
}

export interface Volume {
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
  readonly [field: string]: unknown;
}

export interface PodMetadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Texts;
  readonly annotations?: Texts;
  readonly [field: string]: unknown;
}

export type Texts = Readonly<Record<string, string>>;

/** A Pod, or the template of one. */
export interface Pod {
  readonly metadata?: PodMetadata;
  readonly spec: PodSpec;
  readonly [field: string]: unknown;
}

export type ReadPod =
  | { readonly ok: true; readonly pod: Pod }
  | { readonly ok: false; readonly problems: readonly string[] };

export function readPod(value: unknown): ReadPod {
  if (!isPlainObject(value)) return { ok: false, problems: ["it is no object"] };
  const problems: string[] = [];
  const { spec } = value;
  const metadata = value["metadata"] ?? {};
  if (!isPlainObject(metadata)) problems.push("metadata is no object");
  else if ([metadata["name"] ?? "", metadata["generateName"] ?? ""].some((each) => typeof each !== "string"))
    problems.push("its name is no text: put it in quotes");
  else for (const name of ["labels", "annotations"]) problems.push(...textProblems(`metadata.${name}`, metadata[name]));
  if (!isPlainObject(spec)) return { ok: false, problems: [...problems, "it has no spec"] };
  problems.push(...namedProblems("spec.containers", spec["containers"] ?? [], "containers"));
  problems.push(...namedProblems("spec.initContainers", spec["initContainers"] ?? [], "containers"));
  problems.push(...namedProblems("spec.volumes", spec["volumes"] ?? [], "volumes"));
  if (Array.isArray(spec["containers"]) && spec["containers"].length === 0) problems.push("spec.containers is empty");
  if ((spec["containers"] ?? undefined) === undefined) problems.push("spec has no containers");
  return problems.length > 0 ? { ok: false, problems } : { ok: true, pod: value as unknown as Pod };
}

/** Null is nothing, as Kubernetes takes it. */
function textProblems(place: string, value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!isPlainObject(value)) return [`${place} is no object`];
  return Object.entries(value)
    .filter(([, each]) => typeof each !== "string")
    .map(([name, each]) => `${place}: ${name} is ${JSON.stringify(each)}, no text: put it in quotes`);
}

/** What Kubernetes' own lists of containers hold: 1,000 are far beyond what it starts. */
const maxItems = 1000;

function namedProblems(place: string, value: unknown, what: string): readonly string[] {
  if (!Array.isArray(value)) return [`${place} is no list`];
  if (value.length > maxItems) return [`${place} has more than ${maxItems} ${what}`];
  const names = new Set<string>();
  return value.flatMap((each: unknown, index): readonly string[] => {
    if (!isPlainObject(each) || typeof each["name"] !== "string") return [`${place}[${index}] has no name`];
    const { name } = each;
    if (names.has(name)) return [`${place} has ${JSON.stringify(name)} twice`];
    names.add(name);
    return [];
  });
}

export const labelsOf = ({ metadata }: Pod): Texts => metadata?.labels ?? {};
export const annotationsOf = ({ metadata }: Pod): Texts => metadata?.annotations ?? {};

/** Init containers first, as they start. */
export function allContainers({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

/** Programs that run beside each other: not those that come to an end before. */
export function runningContainers({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []).filter((each) => each["restartPolicy"] === "Always"), ...spec.containers];
}

export function withMetadata(pod: Pod, texts: { readonly labels?: Texts; readonly annotations?: Texts }): Pod {
  const metadata: PlainObject = { ...pod.metadata };
  for (const name of ["labels", "annotations"] as const) {
    const added = texts[name];
    if (added !== undefined && Object.keys(added).length > 0) metadata[name] = { ...pod.metadata?.[name], ...added };
  }
  return { ...pod, metadata };
}
