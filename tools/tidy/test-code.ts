// Where code for tests alone lies: in one folder `testing/` of its package, so that what runs in production is seen to.
import path from "node:path";
import { type Finding, isHandWrittenCode, type SourceFile } from "./source-file.ts";

const testingFolder = /^packages\/[^/]+\/src\/testing\//;

export function isOfTests({ path: file }: SourceFile): boolean {
  return file.endsWith(".test.ts") || file.includes("/testing/");
}

export function checkTestCode(files: readonly SourceFile[]): readonly Finding[] {
  const sources = files.filter((file) => /^packages\/[^/]+\/src\//.test(file.path) && isHandWrittenCode(file));
  const testing = sources.filter((file) => isOfTests(file));
  const production = files.filter(
    ({ path: file }) => file.startsWith("packages/") && !testing.some((t) => t.path === file),
  );
  const inProduction = namedBy(production);
  const inTests = namedBy(files.filter((file) => isHandWrittenCode(file) && !production.includes(file)));
  return sources.flatMap((file): readonly Finding[] => {
    if (file.path.includes("/testing/")) {
      if (testingFolder.test(file.path)) return [];
      return [error(file, "lies in a second testing/ of its package: they belong into src/testing/")];
    }
    // A program's entry.
    if (file.path.endsWith("/src/main.ts")) return [];
    if (isOfTests(file) || inProduction.has(file.path) || !inTests.has(file.path)) return [];
    return [error(file, "is imported by tests alone: it belongs into src/testing/")];
  });
}

/** What files name by a relative path: in an import of any kind, as a thread, as a program, as an export. */
function namedBy(files: readonly SourceFile[]): ReadonlySet<string> {
  const named = files.flatMap(({ path: from, text }) =>
    [...text.matchAll(/["'`](\.[^"'`\s]*\.(?:ts|mjs))["'`]/g)].map(([, to]) =>
      path.posix.join(path.posix.dirname(from), to!),
    ),
  );
  return new Set(named);
}

function error({ path: place }: SourceFile, message: string): Finding {
  return { place, severity: "error", message };
}
