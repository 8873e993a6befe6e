// Expressions of RE2's language, by a library that most proxies never load: shapes that need no automaton are compared
// as text (fields/matchers/regex.ts), and pages of the admin server are filtered by people.
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

const load = createRequire(import.meta.url);

/** @throws with the expression's fault */
export function compileRe2(pattern: string): RE2JS {
  return (load("re2js") as typeof import("re2js")).RE2JS.compile(pattern);
}
