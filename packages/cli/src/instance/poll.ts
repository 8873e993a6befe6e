// A control plane that is asked again and again, for what is shown as it changes.
import { setTimeout as delay } from "node:timers/promises";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";

const pollMs = 300;
/** How long a control plane may be away, which starts again by itself. */
const patienceMs = 30_000;

/** Undefined while it is away. Ends with whoever reads it, or throws what it answers. */
export async function* poll<Answer>(ask: () => Promise<Answer>): AsyncGenerator<Answer | undefined> {
  let answeredAt = performance.now();
  for (;;) {
    let answer: Answer | undefined;
    try {
      answer = await ask();
      answeredAt = performance.now();
    } catch (error) {
      const isAway = error instanceof CommandFailure && error.exitCode === exitCodes.noInstance;
      if (!isAway || performance.now() > answeredAt + patienceMs) throw error;
    }
    yield answer;
    await delay(pollMs);
  }
}
