// Long work as generators that offer a pause now and then: the event loop serves requests in between, so that a push of
// ten thousand routes does not hold up traffic.
import { Pauses } from "./pauses.ts";

/** Yields nothing of interest; each yield is a place where the work may pause. */
export type Sliced<T> = Generator<undefined, T, undefined>;

/** Runs to the end at once. */
export function runAtOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Lets sockets be served whenever a slice is over. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  const pauses = new Pauses();
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (pauses.isDue) await pauses.take();
  }
}

/** The pieces as one text. */
export function* joined(pieces: Iterable<string>): Sliced<string> {
  const taken: string[] = [];
  for (const piece of pieces) {
    taken.push(piece);
    yield;
  }
  return taken.join("");
}
