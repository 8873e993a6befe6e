// Any bytes behind the preface, from a client and from a host; others in each run.
import { test } from "node:test";
import { fuzzFrames } from "../../testing/fuzz-frames.ts";

const inputCount = 60_000;

for (const side of ["client", "host"] as const) {
  test(`any frames of a ${side}`, (t) => {
    fuzzFrames(t, side, inputCount, Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007));
  });
}
