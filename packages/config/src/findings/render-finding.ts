/**
 * A finding as lines of text, in the layout that istioctl's users know: severity and code, the resource with its place,
 * the message; below it, indented, what to do.
 */
import type { Finding } from "./finding.ts";

/** Marks the severity. */
type ColorOf = (severity: Finding["severity"], text: string) => string;

/**
 * `Error [IST0101] (VirtualService shop/catalog rules/02.yaml:12:7) host "catalgo" not found`, then the hint, indented.
 */
export function renderFinding(finding: Finding, colorOf?: ColorOf): string {
  const { severity, code, message, suggestion } = finding;
  const label = `${severity.charAt(0).toUpperCase()}${severity.slice(1)}`;
  const marked = colorOf === undefined ? label : colorOf(severity, label);
  const subject = subjectOf(finding);
  const line = `${marked} [${code}]${subject === "" ? "" : ` (${subject})`} ${shortened(message)}`;
  return suggestion === undefined ? line : `${line}\n  ${suggestion}`;
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
