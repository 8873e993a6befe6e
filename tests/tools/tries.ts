// How often a test tries what is made at random, or what only a crowd shows: seldom in `npm test`, often in `npm run
// test:long`, which runs the files that ask here again (tools/test.ts).

/** Of the environment of `npm run test:long`. */
export const manyTriesVariable = "TULLE_TEST_MANY_TRIES";

export function tries(count: { readonly short: number; readonly long: number }): number {
  return process.env[manyTriesVariable] === "yes" ? count.long : count.short;
}
