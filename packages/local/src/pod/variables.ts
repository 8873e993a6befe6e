// A container's own environment variables: values with $(OTHER) in them, fields of the pod (Kubernetes' downward API),
// and texts of ConfigMaps and Secrets.
import { availableParallelism, totalmem } from "node:os";
import { type Container, parseQuantity, quantityIn } from "@tulle/config";

export type Variable =
  | { readonly name: string; readonly value: string }
  /** One of Kubernetes' paths, such as `metadata.labels['app']`. */
  | { readonly name: string; readonly fieldPath: string }
  | { readonly name: string; readonly from: TextsReference; readonly key: string }
  /** One for each key, which stands behind the prefix. */
  | { readonly prefix: string; readonly from: TextsReference };

export interface TextsReference {
  readonly kind: "ConfigMap" | "Secret";
  /** In the namespace of the pod. */
  readonly name: string;
  /** What is not there is left out, and held to be nothing wrong. */
  readonly optional: boolean;
}

/** The texts of a ConfigMap or Secret by their keys; undefined where there is none. */
export type TextsOf = (
  kind: TextsReference["kind"],
  namespace: string,
  name: string,
) => ReadonlyMap<string, string | Uint8Array> | undefined;

/** What a variable may ask of its pod. */
export interface PodFields {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly nodeName: string;
  readonly serviceAccount: string;
  /** Of the pod as others reach it: of its sidecar, where it has one. */
  readonly podAddress: string;
  readonly hostAddress: string;
}

/** What a variable needs is not there; the message tells people. */
export class MissingText extends Error {
  override readonly name = "MissingText";
}

/**
 * In Kubernetes' order, where later ones win. A source that is not read here gives none: an empty variable would be
 * something else.
 */
export function variablesOf(container: Container, containers: readonly Container[]): readonly Variable[] {
  const all = (container.envFrom ?? []).flatMap(({ prefix = "", configMapRef, secretRef }): Variable[] => [
    ...(configMapRef === undefined ? [] : [{ prefix, from: referenceOf("ConfigMap", configMapRef) }]),
    ...(secretRef === undefined ? [] : [{ prefix, from: referenceOf("Secret", secretRef) }]),
  ]);
  return [...all, ...(container.env ?? []).flatMap((each) => variableOf(each, container, containers) ?? [])];
}

function variableOf(
  { name, value, valueFrom }: NonNullable<Container["env"]>[number],
  own: Container,
  containers: readonly Container[],
): Variable | undefined {
  if (valueFrom === undefined) return { name, value: value ?? "" };
  const { fieldRef, configMapKeyRef, secretKeyRef, resourceFieldRef } = valueFrom;
  if (fieldRef !== undefined) return { name, fieldPath: fieldRef.fieldPath };
  if (configMapKeyRef !== undefined)
    return { name, from: referenceOf("ConfigMap", configMapKeyRef), key: configMapKeyRef.key };
  if (secretKeyRef !== undefined) return { name, from: referenceOf("Secret", secretKeyRef), key: secretKeyRef.key };
  if (resourceFieldRef === undefined) return undefined;
  const { containerName = own.name, resource } = resourceFieldRef;
  const divisor = fieldOf(resourceFieldRef, "divisor");
  const container = containers.find((each) => each.name === containerName) ?? own;
  return { name, value: resourceText(container, resource, typeof divisor === "string" ? divisor : "1") };
}

function referenceOf(
  kind: TextsReference["kind"],
  { name, optional = false }: { readonly name: string; readonly optional?: boolean },
): TextsReference {
  return { kind, name, optional };
}

/** A limit that is not set is all that the machine has; a request that is not set is the limit, else nothing. */
function resourceText(container: Container, resource: string, divisor: string): string {
  const [which = "", name = ""] = resource.split(/\.(.*)/);
  const resources = fieldOf(container, "resources");
  const limit = fieldOf(fieldOf(resources, "limits"), name);
  const own = which === "limits" ? limit : (fieldOf(fieldOf(resources, "requests"), name) ?? limit);
  const text = own ?? (which === "limits" ? ofMachine[name] : undefined) ?? 0;
  const unit = parseQuantity(divisor === "0" ? "1" : divisor);
  const quantity = typeof text === "string" || typeof text === "number" ? parseQuantity(String(text)) : undefined;
  return unit === undefined || quantity === undefined ? "0" : String(quantityIn(quantity, unit));
}

const ofMachine: Readonly<Record<string, number | undefined>> = { cpu: availableParallelism(), memory: totalmem() };

/** Of a part of a manifest that the mesh does not look at otherwise. */
function fieldOf(holder: unknown, name: string): unknown {
  if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, name)) return undefined;
  return (holder as Readonly<Record<string, unknown>>)[name];
}

/**
 * In their order: a value may name those before it, and those that the platform has `given`.
 * @throws {MissingText}
 */
export function resolveVariables(
  variables: readonly Variable[],
  pod: PodFields,
  given: Readonly<Record<string, string>>,
  textsOf: TextsOf,
): Readonly<Record<string, string>> {
  const resolved = new Map(Object.entries(given));
  const own = new Set<string>();
  const set = (name: string, value: string): void => {
    resolved.set(name, value);
    own.add(name);
  };
  for (const variable of variables) {
    if ("value" in variable) set(variable.name, expand(variable.value, resolved));
    else if ("fieldPath" in variable) set(variable.name, podField(pod, variable.fieldPath));
    else for (const [name, value] of textVariables(variable, pod.namespace, textsOf)) set(name, value);
  }
  return Object.fromEntries([...own].map((name) => [name, resolved.get(name)!]));
}

function textVariables(
  variable: Extract<Variable, { readonly from: TextsReference }>,
  namespace: string,
  textsOf: TextsOf,
): readonly (readonly [name: string, value: string])[] {
  const { kind, name, optional } = variable.from;
  const id = `${kind} ${namespace}/${name}`;
  const texts = textsOf(kind, namespace, name);
  const wanted = "prefix" in variable ? "envFrom" : `the variable ${variable.name}`;
  if (texts === undefined) {
    if (optional) return [];
    throw new MissingText(`there is no ${id}, which ${wanted} needs`);
  }
  if ("prefix" in variable) {
    return [...texts].map(([key, text]) => [`${variable.prefix}${key}`, textOf(text, `"${key}" of ${id}`)]);
  }
  const text = texts.get(variable.key);
  if (text !== undefined) return [[variable.name, textOf(text, `"${variable.key}" of ${id}`)]];
  if (optional) return [];
  throw new MissingText(`${id} has no key "${variable.key}", which ${wanted} needs`);
}

/** What the kernel takes as a variable. The message says nothing of the value, which may be a secret. */
function textOf(value: string | Uint8Array, id: string): string {
  let text: string;
  try {
    text = typeof value === "string" ? value : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
  } catch {
    throw new MissingText(`${id} is no text, and cannot be a variable`);
  }
  if (text.includes("\0")) throw new MissingText(`${id} holds a NUL byte, and cannot be a variable`);
  return text;
}

/**
 * Kubernetes' rule: `$(NAME)` is a variable that is known, and stays as it is where it is not; `$$` is a dollar sign.
 */
export function expand(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$(?:\$|\(([^)]*)\))/g, (all, name: string | undefined) =>
    name === undefined ? "$" : (variables.get(name) ?? all),
  );
}

/** A label or annotation that is not there is empty, as in Kubernetes. */
function podField(pod: PodFields, path: string): string {
  const [, map, key = ""] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  if (map === "labels" || map === "annotations") return Object.hasOwn(pod[map], key) ? pod[map][key]! : "";
  return fields[path]?.(pod) ?? "";
}

const fields: Readonly<Record<string, (pod: PodFields) => string>> = {
  "metadata.name": ({ name }) => name,
  "metadata.namespace": ({ namespace }) => namespace,
  "metadata.uid": ({ uid }) => uid,
  "spec.nodeName": ({ nodeName }) => nodeName,
  "spec.serviceAccountName": ({ serviceAccount }) => serviceAccount,
  "status.hostIP": ({ hostAddress }) => hostAddress,
  "status.hostIPs": ({ hostAddress }) => hostAddress,
  "status.podIP": ({ podAddress }) => podAddress,
  "status.podIPs": ({ podAddress }) => podAddress,
};
