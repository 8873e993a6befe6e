// Long compilations as generators that offer a pause now and then: the event loop serves requests in between, so that a
// push of ten thousand routes does not hold up traffic.

/** Yields nothing of interest; each yield is a place where the work may pause. */
export type Sliced<T> = Generator<undefined, T, undefined>;

/** Runs to the end at once. */
export function runAtOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Works at most `sliceMs` of a turn, and lets sockets be served before the next slice. */
export async function runInSlices<T>(work: Sliced<T>, sliceMs = 2): Promise<T> {
  for (;;) {
    const until = performance.now() + sliceMs;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < until);
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}
