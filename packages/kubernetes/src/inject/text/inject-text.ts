/**
 * Puts proxies into the pods of a file of manifests. All else of the text stays byte for byte: comments, quotes, order,
 * line ends. What was made is read again and compared before it is handed out.
 */
import { isDeepStrictEqual } from "node:util";
import { type Finding, type MeshConfig, parseDocuments } from "@tulle/config";
import { type Document, parseAllDocuments } from "yaml";
import { injectPod, type InjectionResult } from "../inject-pod.ts";
import { isPlainObject, type PlainObject } from "../plain-object.ts";
import type { Texts } from "../pod.ts";
import type { InjectionValues } from "../values.ts";
import type { Workload } from "../workload.ts";
import { applyEdits, type Edit, editDocument, NotWritable, sorted } from "./edit-yaml.ts";

export interface TextInjection {
  readonly mesh: Pick<MeshConfig, "enablePrometheusMerge" | "defaultConfig">;
  readonly values: InjectionValues;
  /** Of objects that name none. */
  readonly namespace: string;
  /** Labels of namespaces, as far as they are known. */
  readonly namespaceLabels: ReadonlyMap<string, Texts>;
}

/** One workload of the file. */
export interface InjectedWorkload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly result: InjectionResult;
}

export interface InjectedText {
  /** Undefined where the file cannot be read, or a pod is refused. */
  readonly text: string | undefined;
  /** Of the text as it was, in order. */
  readonly edits: readonly Edit[];
  readonly workloads: readonly InjectedWorkload[];
  readonly findings: readonly Finding[];
}

/** Kind → where its pod, or the template of its pods, lies. */
const podPlaces: Readonly<Record<string, readonly string[]>> = {
  Pod: [],
  PodTemplate: ["template"],
  Deployment: ["spec", "template"],
  StatefulSet: ["spec", "template"],
  DaemonSet: ["spec", "template"],
  ReplicaSet: ["spec", "template"],
  ReplicationController: ["spec", "template"],
  Job: ["spec", "template"],
  CronJob: ["spec", "jobTemplate", "spec", "template"],
};

export function injectText(text: string, file: string, settings: TextInjection): InjectedText {
  const { findings } = parseDocuments(text.replace(/^\uFEFF/, ""), file);
  const isReadable = findings.every(({ severity }) => severity !== "error");
  if (!isReadable) return { text: undefined, edits: [], workloads: [], findings };
  const documents = parse(text);
  const workloads: InjectedWorkload[] = [];
  const changes = documents.map((document) => {
    const before: unknown = document.toJS({ maxAliasCount: -1 });
    return { document, before, after: injectObject(before, settings, workloads) };
  });
  if (workloads.some(({ result }) => result.outcome === "refused")) {
    return { text: undefined, edits: [], workloads, findings };
  }
  try {
    const edits = sorted(changes.flatMap(({ document, before, after }) => editDocument(text, document, before, after)));
    const injected = applyEdits(text, edits);
    const read = parse(injected).map((document) => document.toJS({ maxAliasCount: -1 }) as unknown);
    if (
      !isDeepStrictEqual(
        read,
        changes.map(({ after }) => after),
      )
    )
      throw new NotWritable("it would be read otherwise");
    return { text: injected, edits, workloads, findings };
  } catch (error) {
    if (!(error instanceof NotWritable)) throw error;
    const message = `a proxy cannot be written into this file: ${error.message}`;
    const suggestion = "Write it without anchors, keys of several lines and the like, as kubectl prints it.";
    const finding: Finding = {
      code: "TUL0002",
      severity: "error",
      message,
      suggestion,
      place: { file, line: 1, column: 1 },
    };
    return { text: undefined, edits: [], workloads, findings: [...findings, finding] };
  }
}

function parse(text: string): readonly Document.Parsed[] {
  const documents = parseAllDocuments(text, {
    keepSourceTokens: true,
    merge: true,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "silent",
  });
  if (!Array.isArray(documents)) return [];
  const broken = documents.find(({ errors }) => errors.length > 0);
  if (broken !== undefined) throw new NotWritable(broken.errors[0]!.message);
  return documents;
}

/** Labels of the namespaces that the text itself defines. */
export function namespacesOf(text: string): ReadonlyMap<string, Texts> {
  const { documents } = parseDocuments(text.replace(/^\uFEFF/, ""), "");
  const found = new Map<string, Texts>();
  for (const { value } of documents) {
    if (!isPlainObject(value) || value["kind"] !== "Namespace" || !isPlainObject(value["metadata"])) continue;
    const { name, labels } = value["metadata"];
    if (typeof name !== "string") continue;
    const texts = isPlainObject(labels) ? Object.entries(labels).filter(([, each]) => typeof each === "string") : [];
    found.set(name, Object.fromEntries(texts) as Texts);
  }
  return found;
}

/** The object with its proxy, or as it is. */
function injectObject(value: unknown, settings: TextInjection, workloads: InjectedWorkload[]): unknown {
  if (!isPlainObject(value) || typeof value["kind"] !== "string") return value;
  const { kind, items } = value;
  if (kind.endsWith("List") && Array.isArray(items)) {
    const kinds = kind === "List" ? undefined : kind.slice(0, -"List".length);
    return {
      ...value,
      // Items of a `PodList` need not say that they are Pods.
      items: items.map((item: unknown) => {
        if (kinds === undefined || !isPlainObject(item) || item["kind"] !== undefined)
          return injectObject(item, settings, workloads);
        const { kind: _kind, ...injected } = injectObject({ ...item, kind: kinds }, settings, workloads) as PlainObject;
        return injected;
      }),
    };
  }
  const place = Object.hasOwn(podPlaces, kind) ? podPlaces[kind] : undefined;
  return place === undefined || !isOfKubernetes(value["apiVersion"])
    ? value
    : injectWorkload(value, kind, place, settings, workloads);
}

/** Others have kinds of these names. */
function isOfKubernetes(apiVersion: unknown): boolean {
  return (
    apiVersion === undefined ||
    (typeof apiVersion === "string" && /^(?:(?:apps|batch|extensions)\/)?v\d/.test(apiVersion))
  );
}

function injectWorkload(
  value: PlainObject,
  kind: string,
  place: readonly string[],
  settings: TextInjection,
  workloads: InjectedWorkload[],
): PlainObject {
  const metadata = isPlainObject(value["metadata"]) ? value["metadata"] : {};
  const name = nameOf(metadata["name"]) ?? nameOf(metadata["generateName"]) ?? "";
  const namespace = nameOf(metadata["namespace"]) ?? settings.namespace;
  const apiVersion = nameOf(value["apiVersion"]) ?? "v1";
  const workload: Workload | undefined =
    kind === "Pod" || kind === "PodTemplate" || name === "" ? undefined : { apiVersion, kind, name };
  const result = injectPod({
    pod: at(value, place),
    namespace: { name: namespace, labels: settings.namespaceLabels.get(namespace) ?? {} },
    mesh: settings.mesh,
    values: settings.values,
    injectsUnlabelled: true,
    ...(workload === undefined ? {} : { workload }),
  });
  workloads.push({ kind, namespace, name, result });
  return result.outcome === "injected" ? (withAt(value, place, result.pod) as PlainObject) : value;
}

function nameOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function at(value: unknown, place: readonly string[]): unknown {
  return place.reduce((part, name) => (isPlainObject(part) ? part[name] : undefined), value);
}

function withAt(value: unknown, place: readonly string[], part: unknown): unknown {
  const [name, ...rest] = place;
  if (name === undefined) return part;
  return { ...(value as PlainObject), [name]: withAt((value as PlainObject)[name], rest, part) };
}
