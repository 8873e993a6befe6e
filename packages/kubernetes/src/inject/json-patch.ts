// The difference of two pods as a JSON patch (RFC 6902), as an API server takes it from a webhook.
import { isDeepStrictEqual } from "node:util";
import { alignLists } from "./align-lists.ts";
import { isPlainObject } from "./plain-object.ts";

export type PatchOperation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/** Operations in the order in which they are to be applied; none where the two are equal. */
export function jsonPatch(before: unknown, after: unknown): readonly PatchOperation[] {
  const operations: PatchOperation[] = [];
  compare(before, after, "", operations);
  return operations;
}

function compare(before: unknown, after: unknown, path: string, operations: PatchOperation[]): void {
  if (isDeepStrictEqual(before, after)) return;
  if (isPlainObject(before) && isPlainObject(after)) {
    for (const name of Object.keys(before)) {
      if (!Object.hasOwn(after, name)) operations.push({ op: "remove", path: below(path, name) });
    }
    for (const [name, value] of Object.entries(after)) {
      const place = below(path, name);
      if (Object.hasOwn(before, name)) compare(before[name], value, place, operations);
      else operations.push({ op: "add", path: place, value });
    }
    return;
  }
  const steps = Array.isArray(before) && Array.isArray(after) ? alignLists(before, after) : undefined;
  if (steps === undefined) {
    operations.push({ op: "replace", path, value: after });
    return;
  }
  // Where the list stands while the operations before have been applied.
  let index = 0;
  for (const step of steps) {
    const place = `${path}/${index}`;
    if (step.kind === "removed") {
      operations.push({ op: "remove", path: place });
      continue;
    }
    if (step.kind === "added") operations.push({ op: "add", path: place, value: (after as unknown[])[step.after] });
    else compare((before as unknown[])[step.before], (after as unknown[])[step.after], place, operations);
    index += 1;
  }
}

/** RFC 6901. */
function below(path: string, name: string): string {
  return `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
