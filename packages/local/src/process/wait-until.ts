// Waits for a condition by looking again, with a limit. For things that tell nobody when they change.

export interface WaitUntilOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** What was waited for, for the message when time runs out. */
  readonly what: () => string;
  /** Called once, when the condition was not true at the first look. */
  readonly onWaiting?: () => void;
}

/** Thrown by a condition that will never come true: the wait ends with it at once. */
export class Hopeless extends Error {
  override readonly name = "Hopeless";
}

const pauseMs = 25;

/**
 * A condition that throws has not come true; the last reason is part of the message. @throws when time runs out or on
 * abort
 */
export async function waitUntil(condition: () => boolean | Promise<boolean>, options: WaitUntilOptions): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  let last = "";
  let isFirst = true;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      if (await condition()) return;
      last = "";
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      last = error instanceof Error ? ` (${error.message})` : "";
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${Math.round(options.timeoutMs / 1000)} s for ${options.what()}${last}`);
    }
    if (isFirst) options.onWaiting?.();
    isFirst = false;
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, pauseMs);
    await promise;
  }
}
