// How one list of a pod became another: which items stayed (under their names), which are new, which are gone. Both
// the patch for the API server and the edits of a file are made of it, so that what was there keeps its place.
import { isPlainObject, type PlainObject } from "./plain-object.ts";

/** One item of the new list (`after`), or one of the old list that is gone. */
export type ListStep =
  | { readonly kind: "kept"; readonly before: number; readonly after: number }
  | { readonly kind: "added"; readonly after: number }
  | { readonly kind: "removed"; readonly before: number };

/** Steps in the order of the new list. Undefined where items that stayed have changed places. */
export function alignLists(before: readonly unknown[], after: readonly unknown[]): readonly ListStep[] | undefined {
  const keys = [before.map(keyOf), after.map(keyOf)] as const;
  // Items without a name, such as those of a List, are changed where they are.
  const isInPlace = (index: number): boolean =>
    keys[0][index] === keys[1][index] || (isNameless(before[index]) && isNameless(after[index]));
  if (before.length === after.length && before.every((_, index) => isInPlace(index)))
    return before.map((_, index) => ({ kind: "kept", before: index, after: index }));
  const places = new Map(keys[0].map((key, index) => [key, index]));
  const steps: ListStep[] = [];
  let next = 0;
  for (const [index, key] of keys[1].entries()) {
    const place = places.get(key);
    if (place === undefined) {
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

/** What names an item in lists of Kubernetes: a mount, a port; a container, a volume, a variable. */
const nameFields = ["mountPath", "containerPort", "name"] as const;

/** What an item without a name is compared by is all of it. */
function keyOf(item: unknown): string {
  const field = isPlainObject(item) ? nameFields.find((each) => item[each] !== undefined) : undefined;
  return field === undefined ? JSON.stringify(item) : `${field} ${String((item as PlainObject)[field])}`;
}

function isNameless(item: unknown): boolean {
  return isPlainObject(item) && nameFields.every((field) => item[field] === undefined);
}
