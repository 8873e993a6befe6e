// Breaks up long work on a push: after a few milliseconds of a turn the event loop gets to serve requests.

const sliceMs = 2;

export class Pauses {
  #until = performance.now() + sliceMs;

  /** Returns at once while the slice lasts. */
  async takeIfDue(): Promise<void> {
    if (performance.now() < this.#until) return;
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    this.#until = performance.now() + sliceMs;
  }
}
