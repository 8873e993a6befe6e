// How the rule tables run: in order, until one row refuses. Each row is one function in a file of its own.
import type { Refusal } from "./refusal.ts";

export type Check<Draft, Context> = (
  draft: Draft,
  context: Context,
) => Refusal | undefined | Promise<Refusal | undefined>;

export async function firstRefusal<Draft, Context>(
  table: ReadonlyArray<Check<Draft, Context>>,
  draft: Draft,
  context: Context,
): Promise<Refusal | undefined> {
  for (const check of table) {
    const result = check(draft, context);
    const refusal = result instanceof Promise ? await result : result;
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}
