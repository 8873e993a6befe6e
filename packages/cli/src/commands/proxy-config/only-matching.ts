// What a filter of `proxy-config` leaves; nothing is said to be nothing, since an empty table looks like a proxy
// without anything.
import { CommandFailure } from "../../command/command-failure.ts";

const listedAtMost = 20;

/** `wanted` undefined stands for all. @throws {CommandFailure} when none of the items has the wanted name */
export function onlyMatching<T>(
  items: readonly T[],
  wanted: string | undefined,
  { nameOf, what, id }: { readonly nameOf: (item: T) => string; readonly what: string; readonly id: string },
): readonly T[] {
  if (wanted === undefined) return items;
  const found = items.filter((item) => nameOf(item) === wanted);
  if (found.length > 0) return found;
  const names = [...new Set(items.map(nameOf))].filter((name) => name !== "").toSorted();
  const near = names.filter((name) => name.includes(wanted));
  const shown = (near.length > 0 ? near : names).slice(0, listedAtMost);
  const rest = (near.length > 0 ? near : names).length - shown.length;
  const list = [...shown.map((name) => `  ${name}`), ...(rest > 0 ? [`  and ${rest} more`] : [])].join("\n");
  throw new CommandFailure(
    `the proxy of ${id} has no ${what} ${wanted}`,
    list === "" ? {} : { hint: `It has:\n${list}` },
  );
}
