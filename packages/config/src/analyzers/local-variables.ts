/**
 * TUL0012: a program of this machine waits for the ConfigMaps and Secrets that its variables come from, as a container
 * of Kubernetes does; a variable of a source that is not read here is left out.
 */
import type { Container } from "../kinds/pod-spec.ts";
import { secretKeys } from "../kinds/secret.ts";
import type { Path } from "../findings/places.ts";
import type { AnalyzedMesh, Analyzer } from "./analyzer.ts";

interface Reference {
  readonly path: Path;
  /** What takes its value from there. */
  readonly what: string;
  readonly kind: "ConfigMap" | "Secret";
  readonly name: string;
  /** Undefined: all keys, whatever they are. */
  readonly key?: string;
}

export const localVariables: Analyzer = {
  name: "local-variables",
  codes: ["TUL0012"],
  *run(mesh) {
    if (mesh.options.networkMode !== "loopback") return;
    for (const resource of mesh.list("Deployment")) {
      for (const [index, container] of resource.spec.template.spec.containers.entries()) {
        const path = ["spec", "template", "spec", "containers", index];
        for (const [at, { name, valueFrom }] of (container.env ?? []).entries()) {
          if (valueFrom === undefined || sourcesOf(valueFrom).length > 0) continue;
          yield {
            code: "TUL0012",
            resource,
            path: [...path, "env", at, "valueFrom"],
            message: `the variable ${name} of container "${container.name}" is not set: of valueFrom fieldRef, configMapKeyRef, secretKeyRef and resourceFieldRef are read here`,
            suggestion: "Give it a value, or set it for tulle up: programs inherit its environment.",
          };
        }
        for (const { path: at, what, kind, name, key } of references(container)) {
          const id = `${kind} ${resource.metadata.namespace}/${name}`;
          const keys = keysOf(mesh, kind, resource.metadata.namespace, name);
          if (keys !== undefined && (key === undefined || keys.includes(key))) continue;
          const missing = keys === undefined ? `there is no ${id}` : `${id} has no key "${key}"`;
          yield {
            code: "TUL0012",
            resource,
            path: [...path, ...at],
            message: `${what} of container "${container.name}": ${missing}, and the program is not started before`,
            suggestion: "Add it, or write `optional: true` where the program can do without.",
          };
        }
      }
    }
  },
};

type ValueFrom = NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>;

/** Those that are read here. */
function sourcesOf({ fieldRef, configMapKeyRef, secretKeyRef, resourceFieldRef }: ValueFrom): readonly unknown[] {
  return [fieldRef, configMapKeyRef, secretKeyRef, resourceFieldRef].filter((source) => source !== undefined);
}

/** What has to be there before the program can start. */
function* references({ env = [], envFrom = [] }: Container): Iterable<Reference> {
  for (const [at, { name: variable, valueFrom }] of env.entries()) {
    for (const [field, kind] of [
      ["configMapKeyRef", "ConfigMap"],
      ["secretKeyRef", "Secret"],
    ] as const) {
      const source = valueFrom?.[field];
      if (source === undefined || source.optional === true) continue;
      const { name, key } = source;
      yield { path: ["env", at, "valueFrom", field], what: `the variable ${variable}`, kind, name, key };
    }
  }
  for (const [at, source] of envFrom.entries()) {
    for (const [field, kind] of [
      ["configMapRef", "ConfigMap"],
      ["secretRef", "Secret"],
    ] as const) {
      const { name, optional = false } = source[field] ?? { name: undefined };
      if (name === undefined || optional) continue;
      yield { path: ["envFrom", at, field], what: "envFrom", kind, name };
    }
  }
}

/** Undefined where there is no such resource. */
function keysOf(
  mesh: AnalyzedMesh,
  kind: Reference["kind"],
  namespace: string,
  name: string,
): readonly string[] | undefined {
  const isIt = ({ metadata }: { readonly metadata: { readonly namespace: string; readonly name: string } }): boolean =>
    metadata.namespace === namespace && metadata.name === name;
  if (kind === "Secret") {
    const secret = mesh.list("Secret").find(isIt);
    return secret === undefined ? undefined : secretKeys(secret);
  }
  const configMap = mesh.list("ConfigMap").find(isIt);
  return configMap === undefined ? undefined : Object.keys(configMap.data ?? {});
}
