// What people's configuration was when the control plane had it last, as one short hash an object: by these it knows at
// its next start what was changed while it was away.
import { hash } from "node:crypto";
import { type Finding, keyOf, keyText, type MeshResource, placeOf } from "@tulle/config";
import type { ChangedWhileAway } from "@tulle/config/api";

/** Objects that are remembered; of further ones nothing is told. */
export const maxSeen = 20_000;
/** Objects named in one entry. */
export const maxNamed = 50;
/** Codes of findings in one entry. */
const maxCodes = 12;
const hexDigits = 16;

/** By `keyText`. */
export type SeenObjects = ReadonlyMap<string, string>;

/** As it is kept. */
export interface SavedSeen {
  readonly seen: Readonly<Record<string, string>>;
}

/** Of an earlier run; undefined for what is none. */
export function parseSavedSeen(value: unknown): SavedSeen | undefined {
  if (typeof value !== "object" || value === null || !("seen" in value)) return undefined;
  const { seen } = value;
  if (typeof seen !== "object" || seen === null) return undefined;
  return Object.values(seen).every((each) => typeof each === "string") ? (value as SavedSeen) : undefined;
}

/** `written` is what people have written of an object. Equal for equal content, in whatever order its fields stand. */
export function contentHash(written: unknown): string {
  const text = JSON.stringify(written, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
  return hash("sha256", text).slice(0, hexDigits);
}

/** What differs between then and now; undefined where nothing does. */
export function changedWhileAway(
  before: SeenObjects,
  now: SeenObjects,
  resources: readonly MeshResource[],
  findings: readonly Finding[],
): { readonly objects: ChangedWhileAway; readonly codes: readonly string[] } | undefined {
  const byKey = new Map(resources.map((resource) => [keyText(keyOf(resource)), resource]));
  const added = before.size < maxSeen ? [...now.keys()].filter((key) => !before.has(key)) : [];
  const modified = [...now].filter(([key, digest]) => before.has(key) && before.get(key) !== digest);
  const deleted = [...before.keys()].filter((key) => !byKey.has(key));
  const all = [
    ...added.map((key) => ({ key, type: "added" as const })),
    ...modified.map(([key]) => ({ key, type: "modified" as const })),
    ...deleted.map((key) => ({ key, type: "deleted" as const })),
  ];
  if (all.length === 0) return undefined;
  const keys = new Set(all.map(({ key }) => key));
  // What cannot be read is an object's no more: why one is gone may be said of its file alone.
  const ofThese = findings.filter(({ resource }) =>
    resource === undefined ? deleted.length > 0 : keys.has(keyText(resource)),
  );
  const named = all.slice(0, maxNamed).map(({ key, type }) => {
    const resource = byKey.get(key);
    const place = resource && placeOf(resource);
    return { type, ...partsOf(key), ...(place === undefined ? {} : { file: `${place.file}:${place.line}` }) };
  });
  return {
    objects: { named, more: all.length - named.length },
    codes: [...new Set(ofThese.map(({ code }) => code))].slice(0, maxCodes),
  };
}

function partsOf(key: string): { readonly kind: string; readonly namespace: string; readonly name: string } {
  const [kind = "", namespace = "", ...name] = key.split("/");
  return { kind, namespace, name: name.join("/") };
}
