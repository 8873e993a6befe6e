/**
 * A finding as lines of text, in the layout that istioctl's users know: severity and code, the resource with its place, the
 * message; below it what to do. Long lines are broken for narrow terminals.
 */
import type { Finding } from "./finding.ts";

export interface RenderOptions {
  /** Width of the terminal; lines are not broken when missing. */
  readonly columns?: number | undefined;
  /** Marks the severity; plain text when missing. */
  readonly colorOf?: (severity: Finding["severity"], text: string) => string;
}

/** `Error [IST0101] (VirtualService shop/catalog rules/02.yaml:12:7) host "catalgo" not found`, then the hint, indented. */
export function renderFinding(finding: Finding, options: RenderOptions = {}): string {
  const { severity, code, message, suggestion } = finding;
  const label = `${severity.charAt(0).toUpperCase()}${severity.slice(1)}`;
  const subject = subjectOf(finding);
  const text = `${label} [${code}]${subject === "" ? "" : ` (${subject})`} ${shortened(message)}`;
  const lines = wrap(text, options.columns, "  ");
  if (suggestion !== undefined) lines.push(...wrap(`  ${suggestion}`, options.columns, "  "));
  const [first = "", ...rest] = lines;
  const { colorOf } = options;
  const marked = colorOf === undefined ? first : colorOf(severity, label) + first.slice(label.length);
  return [marked, ...rest].join("\n");
}

function subjectOf({ resource, place }: Finding): string {
  const parts: string[] = [];
  if (resource !== undefined) {
    const { kind, namespace, name } = resource;
    const whole = namespace === "" ? name : `${namespace}/${name}`;
    parts.push(`${shortened(kind)} ${shortened(whole)}`);
  }
  if (place !== undefined) parts.push(`${place.file}:${place.line}:${place.column}`);
  return parts.join(" ");
}

/** Of a part of a line; Kubernetes allows names 253 characters. A document may hold a kind of a million. */
const longestText = 2_000;

function shortened(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)}… (${text.length} characters)`;
}

/** Breaks at spaces; a word longer than the line (a path) stays whole, so that it can be copied. */
function wrap(text: string, columns: number | undefined, indent: string): string[] {
  if (columns === undefined || text.length <= columns) return [text];
  const leading = /^ */.exec(text)?.[0] ?? "";
  const lines: string[] = [];
  let line = "";
  for (const word of text.trim().split(" ")) {
    const margin = lines.length === 0 ? leading : leading + indent;
    if (line !== "" && margin.length + line.length + 1 + word.length > columns) {
      lines.push(margin + line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  lines.push((lines.length === 0 ? leading : leading + indent) + line);
  return lines;
}

/** Errors first, then warnings, then what is worth knowing; by file and line within each. */
export function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  const rank = { error: 0, warning: 1, info: 2 } as const;
  return findings.toSorted(
    (a, b) =>
      rank[a.severity] - rank[b.severity] ||
      compareText(a.place?.file ?? "", b.place?.file ?? "") ||
      (a.place?.line ?? 0) - (b.place?.line ?? 0) ||
      (a.place?.column ?? 0) - (b.place?.column ?? 0),
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
