// A container's own environment variables: values with $(OTHER) in them, and fields of the pod (Kubernetes' downward API).
import type { Container } from "@tulle/config";

export type Variable =
  | { readonly name: string; readonly value: string }
  /** One of Kubernetes' paths, such as `metadata.labels['app']`. */
  | { readonly name: string; readonly fieldPath: string };

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

type EnvironmentVariable = NonNullable<Container["env"]>[number];

/** Undefined for a source that cannot be read here: an empty variable would be something else than a missing one. */
export function variableOf({ name, value, valueFrom }: EnvironmentVariable): Variable | undefined {
  if (valueFrom === undefined) return { name, value: value ?? "" };
  const fieldPath = valueFrom.fieldRef?.fieldPath;
  return fieldPath === undefined ? undefined : { name, fieldPath };
}

/** In their order: a value may name those before it, and those that the platform has `given`. */
export function resolveVariables(
  variables: readonly Variable[],
  pod: PodFields,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const resolved: Record<string, string> = {};
  for (const variable of variables) {
    resolved[variable.name] =
      "value" in variable
        ? expand(variable.value, (name) => resolved[name] ?? given[name])
        : fieldOf(pod, variable.fieldPath);
  }
  return resolved;
}

/** Kubernetes' rule: `$(NAME)` is a variable that is known, and stays as it is where it is not; `$$` is a dollar sign. */
function expand(text: string, valueOf: (name: string) => string | undefined): string {
  return text.replaceAll(/\$(?:\$|\(([^)]*)\))/g, (all, name: string | undefined) =>
    name === undefined ? "$" : (valueOf(name) ?? all),
  );
}

/** A label or annotation that is not there is empty, as in Kubernetes. */
function fieldOf(pod: PodFields, path: string): string {
  const [, map, key = ""] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  if (map === "labels" || map === "annotations") return pod[map][key] ?? "";
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
