// RFC 6902 as far as a webhook's patches use it, so that a test applies them without the code that made them.
import type { PatchOperation } from "@tulle/kubernetes";

type Holder = Record<string, unknown> | unknown[];

export function applyPatch(document: unknown, operations: readonly PatchOperation[]): unknown {
  const root: { document: unknown } = { document: structuredClone(document) };
  for (const operation of operations) {
    const names = ["document", ...operation.path.split("/").slice(1)].map((name) =>
      name.replaceAll("~1", "/").replaceAll("~0", "~"),
    );
    const last = names.pop()!;
    let holder: Holder = root;
    for (const name of names) holder = (holder as Record<string, Holder>)[name]!;
    change(holder, last, operation);
  }
  return root.document;
}

function change(holder: Holder, name: string, operation: PatchOperation): void {
  const value = operation.op === "remove" ? undefined : structuredClone(operation.value);
  if (Array.isArray(holder)) {
    const index = Number(name);
    if (operation.op === "add") holder.splice(index, 0, value);
    else if (operation.op === "remove") holder.splice(index, 1);
    else holder[index] = value;
    return;
  }
  if (operation.op !== "add" && !Object.hasOwn(holder, name)) throw new Error(`${operation.path} is not there`);
  if (operation.op === "remove") delete holder[name];
  else holder[name] = value;
}
