// Lays one pod over another, as Kubernetes' strategic merge does: objects field by field, lists of what has a name by
// those names, all else as the upper one says. Null takes a field away.
import { isPlainObject, type PlainObject } from "./plain-object.ts";

/** Lists that are merged, and what names their items. All others are taken whole. */
const listKeys: Readonly<Record<string, string>> = {
  containers: "name",
  initContainers: "name",
  ephemeralContainers: "name",
  volumes: "name",
  env: "name",
  imagePullSecrets: "name",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  ports: "containerPort",
  hostAliases: "ip",
  topologySpreadConstraints: "topologyKey",
};

/** What is laid over is not written as it has to be. */
export class NotMergeable extends Error {}

/** @throws {NotMergeable} for a list whose items lack their name, and for directives (`$patch`) */
export function mergePods<T extends object>(lower: T, upper: object): T {
  return mergeObjects(lower as PlainObject, upper as PlainObject) as T;
}

function mergeObjects(lower: PlainObject, upper: PlainObject): PlainObject {
  const merged = new Map(Object.entries(lower));
  for (const [name, value] of Object.entries(upper)) {
    if (name.startsWith("$")) throw new NotMergeable(`the directive ${name} is not understood`);
    if (value === null) merged.delete(name);
    else merged.set(name, mergeField(name, merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

function mergeField(name: string, lower: unknown, upper: unknown): unknown {
  if (isPlainObject(lower) && isPlainObject(upper)) return mergeObjects(lower, upper);
  const key = Object.hasOwn(listKeys, name) ? listKeys[name] : undefined;
  if (key === undefined || !Array.isArray(upper)) return upper;
  const items = new Map<unknown, unknown>();
  const put = (item: unknown): void => {
    if (!isPlainObject(item) || item[key] === undefined) throw new NotMergeable(`an item of ${name} has no ${key}`);
    const known = items.get(item[key]);
    items.set(item[key], isPlainObject(known) ? mergeObjects(known, item) : item);
  };
  for (const item of Array.isArray(lower) ? (lower as unknown[]) : []) put(item);
  for (const item of upper as unknown[]) put(item);
  return [...items.values()];
}
