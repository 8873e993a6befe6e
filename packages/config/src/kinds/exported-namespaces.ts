/** The entries of `exportTo`, which VirtualServices and DestinationRules share: each namespace once, or all of them. */
import type { Report } from "../schema/schema.ts";
import { quote } from "../schema/formats.ts";

/**
 * Rules of Istio's validation (validateExportTo); `.` and the resource's own namespace are the same, which is not known
 * here.
 */
export function exportsFit({ exportTo = [] }: { readonly exportTo?: readonly string[] }, report: Report): void {
  const seen = new Set<string>();
  exportTo.forEach((entry, index) => {
    if (seen.has(entry)) report({ path: ["exportTo", index], message: `${quote(entry)} is listed twice` });
    seen.add(entry);
    if (entry === "~") {
      report({
        path: ["exportTo", index],
        message: '"~" (nobody) is not for this kind',
        suggestion: 'Write "." instead.',
      });
    }
  });
  if (exportTo.length > 1 && exportTo.includes("*")) {
    report({ path: ["exportTo"], message: '"*" stands for every namespace, and others are listed beside it' });
  }
}
