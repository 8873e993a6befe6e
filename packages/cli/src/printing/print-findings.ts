// Findings as a command shows them: sorted, each once, with colour on a terminal.
import { findingPages, renderFinding, sortFindings, type Finding, type FindingCode } from "@tulle/config";
import { createColors } from "picocolors";
import type { CommandContext } from "../command/command-module.ts";
import { wrapBehind, wrapText } from "./wrap-text.ts";

/**
 * One text a finding, most serious first. Findings that say the same twice are shown once. `told` are codes whose page
 * was named before; who shows findings one by one keeps it.
 */
export function renderFindings(
  findings: readonly Finding[],
  context: Pick<CommandContext, "isTerminal" | "env" | "columns">,
  told = new Set<FindingCode>(),
): string {
  const useColor = context.isTerminal && (context.env["NO_COLOR"] ?? "") === "";
  const { red, yellow, cyan } = createColors(useColor);
  const columns = context.isTerminal ? context.columns : undefined;
  const colors = { error: red, warning: yellow, info: cyan } as const;
  const texts = sortFindings(distinct(findings)).map((finding) => {
    const text = renderFinding(finding, (severity, label) => colors[severity](label));
    return `${wrapFinding(text, columns)}\n`;
  });
  return [...texts, ...pagesOf(findings, told)].join("");
}

/** What to do stands indented below what is wrong, and stays so. */
function wrapFinding(text: string, columns: number | undefined): string {
  const lines = text.split("\n").map((line) => {
    return line.startsWith("  ") ? wrapBehind("  ", line.slice(2), columns, "  ") : wrapText(line, columns, "  ");
  });
  return lines.join("\n");
}

/** Where more is said of the codes, once for each code. */
function pagesOf(findings: readonly Finding[], told: Set<FindingCode>): readonly string[] {
  const codes = new Set(findings.map(({ code }) => code)).difference(told);
  return [...codes].flatMap((code) => {
    told.add(code);
    const page = findingPages[code];
    return page === undefined ? [] : [`[${code}] What takes effect of Istio's API, field by field: ${page}\n`];
  });
}

/** For programs: each with the page that says more of its code, where there is one. */
export function findingRows(findings: readonly Finding[]): readonly (Finding & { readonly page?: string })[] {
  return sortFindings(findings).map((finding) => {
    const page = findingPages[finding.code];
    return page === undefined ? finding : { ...finding, page };
  });
}

export function distinct(findings: readonly Finding[]): readonly Finding[] {
  const seen = new Map<string, Finding>();
  for (const finding of findings) {
    const { code, resource, path, message, place } = finding;
    const at = resource === undefined ? place : resource;
    const key = JSON.stringify([code, at, path, message]);
    // Of the same finding from two sources the one with a place is kept.
    if (seen.get(key)?.place === undefined) seen.set(key, finding);
  }
  return [...seen.values()];
}

/** `2 errors, 1 warning`; "no findings" for none. */
export function countFindings(findings: readonly Finding[]): string {
  const words = { error: "error", warning: "warning", info: "note" } as const;
  const parts = (["error", "warning", "info"] as const).flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? [] : [`${count} ${words[severity]}${count === 1 ? "" : "s"}`];
  });
  return parts.length === 0 ? "no findings" : parts.join(", ");
}
