// Load before anything is measured, until V8 has compiled what is hot.
import type { LoadResult } from "./run-wrk.ts";

/** A busy machine lets fewer requests through in the same time. */
const maxLoads = 8;

/** `requests`: that many at least, unless they do not go through in many times the `seconds`. */
export async function warmUp(
  load: (seconds: number) => Promise<LoadResult>,
  { seconds, requests }: { readonly seconds: number; readonly requests: number },
): Promise<void> {
  let left = requests;
  for (let loads = 0; left > 0 && loads < maxLoads; loads++) left -= (await load(seconds)).requests;
}
