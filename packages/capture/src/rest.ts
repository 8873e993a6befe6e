// Gives back to the machine what a process took to start, once it rests: the engine keeps room for the next burst of
// objects, and the allocator what was freed in between. A sidecar at rest takes a quarter less (ARCHITECTURE.md, "What
// makes it small").
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { trimAllocator } from "./kernel.ts";

export interface RestOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal;
  /** For tests: CPU time of the process so far, in microseconds. */
  readonly cpuMicros?: () => number;
  /** For tests. */
  readonly giveBack?: () => Promise<void>;
  readonly firstLookMs?: number;
  readonly lookMs?: number;
}

/** From the start to the first look; each next one is twice as far away. Who works all the time keeps what it has. */
const firstLookMs = 5000;
const mostLooks = 7;
/** A look takes this long, */
const lookMs = 1000;
/** and who takes less of a core in it rests: probes and scrapes take less. */
const restingShare = 0.03;

/** Resolves when memory was given back, or will not be: never rejects. Keeps no process alive. */
export async function giveBackAtRest(options: RestOptions = {}): Promise<void> {
  const { signal, cpuMicros = usedMicros, giveBack = giveMemoryBack } = options;
  const timer = { ref: false, ...(signal === undefined ? {} : { signal }) };
  try {
    for (let look = 0, waitMs = options.firstLookMs ?? firstLookMs; look < mostLooks; look++, waitMs *= 2) {
      await pause(waitMs, undefined, timer);
      const [before, beganMs] = [cpuMicros(), performance.now()];
      await pause(options.lookMs ?? lookMs, undefined, timer);
      const share = (cpuMicros() - before) / 1000 / (performance.now() - beganMs);
      if (share < restingShare) return await giveBack();
    }
  } catch {
    // It ends, or the engine hands its collector out to nobody: what it has stays.
  }
}

function usedMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

type Collect = (options: { type: "major"; execution: "async"; flavor: "last-resort" }) => Promise<void>;

/** Stops the process for a tenth of a second. */
export async function giveMemoryBack(): Promise<void> {
  // The engine's collector is handed out by new contexts alone, from now on.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  // Its last resort gives room back, too, and code that has not run again.
  await collect({ type: "major", execution: "async", flavor: "last-resort" });
  trimAllocator();
}
