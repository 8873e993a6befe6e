// Sizes of files and functions: a file past its limit is an error unless its reason stands here, a function past the
// soft one a place to look at again.
import { isHandWrittenCode, type Finding, type SourceFile } from "./source-file.ts";

const maxFileLines = 400;
const maxTestLines = 700;
const softFunctionLines = 70;
const hardFunctionLines = 140;

/** File → why it is better in one piece. */
const largeForAReason: Readonly<Record<string, string>> = {
  "tests/parity/token-rows.ts": "a table of cases",
};

export function checkSizes(file: SourceFile): readonly Finding[] {
  if (!isHandWrittenCode(file) || file.path in largeForAReason) return [];
  const isTest = file.path.endsWith(".test.ts");
  const lines = file.text.split("\n").length - 1;
  const most = isTest ? maxTestLines : maxFileLines;
  const findings: Finding[] = [];
  if (lines > most) {
    findings.push({ place: file.path, severity: "error", message: `${lines} lines in one file; ${most} at the most` });
  }
  if (isTest) return findings;
  for (const { name, line, length } of functionsOf(file.text)) {
    if (length <= softFunctionLines) continue;
    const severity = length > hardFunctionLines ? "error" : "warning";
    findings.push({ place: file.path, line, severity, message: `${name} has ${length} lines` });
  }
  return findings;
}

const functionStarts = [
  /^(\s*)(?:export )?(?:default )?(?:async )?function\*? ?([\w$]*)/,
  /^(\s*)(?:export )?(?:const|let) ([\w$]+)(?:: [^=]*)? = (?:async )?(?:\(|function\b|[\w$]+ =>)/,
  /^(\s+)(?:(?:public|private|protected|static|override|async|get|set) )*\*?(#?[\w$]+|\[[\w.]+\])(?:<[^(]*>)?\((?!.*\);$)/,
];

const notAFunction = new Set([
  "if",
  "for",
  "while",
  "switch",
  "catch",
  "return",
  "await",
  "throw",
  "super",
  "function",
  "with",
]);

/**
 * Formatted code closes a function with a brace at the indentation of its start, which is all that is needed to measure
 * it.
 */
export function functionsOf(
  text: string,
): readonly { readonly name: string; readonly line: number; readonly length: number }[] {
  const lines = text.split("\n");
  return lines.flatMap((start, index) => {
    const match = functionStarts.map((pattern) => pattern.exec(start)).find((found) => found !== null);
    if (match === undefined || match === null || notAFunction.has(match[2]!)) return [];
    const indent = match[1]!;
    const opening = bodyOpening(lines, index, indent);
    if (opening === undefined) return [];
    const end = lines.findIndex((line, at) => at > opening && line.startsWith(`${indent}}`));
    if (end < 0) return [];
    return [{ name: match[2] || "a function", line: index + 1, length: end - index + 1 }];
  });
}

/** The line on which the body's brace opens: the first one, or the one with which a broken parameter list ends. */
function bodyOpening(lines: readonly string[], start: number, indent: string): number | undefined {
  if (lines[start]!.endsWith("{")) return start;
  const next = lines.findIndex(
    (line, at) => at > start && line.startsWith(indent) && /^\S/.test(line.slice(indent.length)),
  );
  return next > 0 && lines[next]!.startsWith(`${indent})`) && lines[next]!.endsWith("{") ? next : undefined;
}
