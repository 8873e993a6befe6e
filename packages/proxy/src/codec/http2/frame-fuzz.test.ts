// Any bytes behind the preface, from a client and from a host; the same ones in each run.
import { test } from "node:test";
import { fuzzFrames } from "../../testing/fuzz-frames.ts";

for (const side of ["client", "host"] as const) {
  test(`any frames of a ${side}`, (t) => fuzzFrames(t, side, 1000, 1));
}
