// Shows that the tests guard every row of the rule tables: takes each row out in turn, in a copy of the package, and
// expects the tests to fail. Run it alone with `node packages/authorization-server/tools/rule-table-check.ts [ROW…]`.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const packageFolder = path.resolve(import.meta.dirname, "..");
// Inside the repository, so that the copy finds its dependencies; outside of what git and the other tools look at.
const cacheFolder = path.resolve(packageFolder, "../../.cache");

const tables = [
  "src/authorize/address-checks.ts",
  "src/authorize/request-checks.ts",
  "src/authorize/owner-checks.ts",
  "src/client-authentication/message-checks.ts",
  "src/client-authentication/client-checks.ts",
  "src/token/grant-type-checks.ts",
  "src/token/code-checks.ts",
  "src/token/refresh-checks.ts",
  "src/token/client-credentials-checks.ts",
];

/**
 * In this order, until one fails: the first two guard most rows, and the others may wait a minute for what does not
 * come.
 */
const tests = [
  "src/rules.test.ts",
  "src/token-rules.test.ts",
  "src/checks.test.ts",
  "src/hints.test.ts",
  "src/authorize/claims.test.ts",
  "src/session-end/session-end.test.ts",
];

export interface RowResult {
  readonly table: string;
  readonly row: string;
  /** Whether a test failed without the row. */
  readonly guarded: boolean;
}

interface TableRow {
  readonly table: string;
  readonly row: string;
  readonly line: number;
}

/** The rows of a table are the lines of its array literal, one name a line. */
export function rowsOf(table: string, source: string): readonly TableRow[] {
  return source
    .split("\n")
    .map((text, line) => ({ table, row: /^ {2}([a-z]\w+),$/i.exec(text)?.[1] ?? "", line }))
    .filter(({ row }) => row !== "");
}

function allRows(): readonly TableRow[] {
  return tables.flatMap((table) => {
    const rows = rowsOf(table, readFileSync(path.join(packageFolder, table), "utf8"));
    if (rows.length === 0) throw new Error(`no rows found in ${table}; write each row on a line of its own`);
    return rows;
  });
}

async function testsPass(folder: string): Promise<boolean> {
  for (const file of tests) if (!(await testPasses(folder, file))) return false;
  return true;
}

function testPasses(folder: string, file: string): Promise<boolean> {
  return new Promise((resolve) => {
    // NODE_TEST_CONTEXT would make a nested test run report to the outer one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = execFile(process.execPath, ["--test", "--test-reporter=dot", file], {
      cwd: folder,
      env,
      timeout: 120_000,
    });
    child.on("exit", (code) => resolve(code === 0));
  });
}

/** Checks every row, or those named; `report` is told each result. */
export async function checkRuleTables(
  only: readonly string[],
  report: (result: RowResult) => void,
): Promise<readonly RowResult[]> {
  mkdirSync(cacheFolder, { recursive: true });
  const folder = mkdtempSync(path.join(cacheFolder, "rule-tables-"));
  try {
    cpSync(path.join(packageFolder, "src"), path.join(folder, "src"), { recursive: true });
    cpSync(path.join(packageFolder, "package.json"), path.join(folder, "package.json"));
    if (!(await testsPass(folder))) throw new Error("the tests fail already with every row in place");
    const results: RowResult[] = [];
    for (const { table, row, line } of allRows()) {
      if (only.length > 0 && !only.includes(row)) continue;
      const file = path.join(folder, table);
      const source = readFileSync(file, "utf8");
      const lines = source.split("\n");
      lines.splice(line, 1);
      writeFileSync(file, lines.join("\n"));
      const result = { table, row, guarded: !(await testsPass(folder)) };
      writeFileSync(file, source);
      results.push(result);
      report(result);
    }
    return results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const results = await checkRuleTables(process.argv.slice(2), ({ table, row, guarded }) => {
    process.stdout.write(`${guarded ? "guarded  " : "UNGUARDED"} ${row} (${table})\n`);
  });
  const open = results.filter((result) => !result.guarded);
  process.stdout.write(`${results.length - open.length} of ${results.length} rows are guarded by a test\n`);
  process.exitCode = open.length === 0 && results.length > 0 ? 0 : 1;
}
