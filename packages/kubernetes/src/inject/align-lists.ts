// How one list of a pod became another: which items stayed (under their names), which are new, which are gone. Both
// the patch for the API server and the edits of a file are made of it, so that what was there keeps its place.
import { isDeepStrictEqual } from "node:util";
import { isPlainObject } from "./plain-object.ts";

/** One item of the new list (`after`), or one of the old list that is gone. */
export type ListStep =
  | { readonly kind: "kept"; readonly before: number; readonly after: number }
  | { readonly kind: "added"; readonly after: number }
  | { readonly kind: "removed"; readonly before: number };

/** Steps in the order of the new list. Undefined where items that stayed have changed places. */
export function alignLists(before: readonly unknown[], after: readonly unknown[]): readonly ListStep[] | undefined {
  const isInPlace = (item: unknown, index: number): boolean =>
    isSame(item, after[index]) || (isPlainObject(item) && !isNamed(item) && isPlainObject(after[index]));
  if (before.length === after.length && before.every(isInPlace))
    return before.map((_, index) => ({ kind: "kept", before: index, after: index }));
  const steps: ListStep[] = [];
  let next = 0;
  const places = after.map((item) => before.findIndex((each) => isSame(each, item)));
  for (const [index, place] of places.entries()) {
    if (place < 0) {
      steps.push({ kind: "added", after: index });
      continue;
    }
    if (place < next) return undefined;
    for (; next < place; next += 1) steps.push({ kind: "removed", before: next });
    steps.push({ kind: "kept", before: place, after: index });
    next = place + 1;
  }
  for (; next < before.length; next += 1) steps.push({ kind: "removed", before: next });
  return steps;
}

/** What names an item in lists of Kubernetes: a container, a volume, a variable; a mount; a port. */
const nameFields = ["name", "mountPath", "containerPort"] as const;

function isNamed(item: Readonly<Record<string, unknown>>): boolean {
  return nameFields.some((field) => item[field] !== undefined);
}

function isSame(a: unknown, b: unknown): boolean {
  if (isPlainObject(a) && isPlainObject(b)) {
    for (const field of nameFields) {
      if (a[field] !== undefined || b[field] !== undefined) {
        const isMount = field === "name" && (a["mountPath"] !== undefined || b["mountPath"] !== undefined);
        const isPort = field === "name" && (a["containerPort"] !== undefined || b["containerPort"] !== undefined);
        if (isMount || isPort) continue;
        return a[field] === b[field];
      }
    }
  }
  return isDeepStrictEqual(a, b);
}
