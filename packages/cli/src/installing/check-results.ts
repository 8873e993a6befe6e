// Lines for what was looked at in a cluster, good or not.
import type { CheckResult } from "@tulle/kubernetes";
import { wrapText } from "../printing/wrap-text.ts";

const signs: Readonly<Record<CheckResult["outcome"], string>> = { good: "✔", warning: "!", error: "✘" };

export function resultsText(results: readonly CheckResult[], columns: number | undefined): string {
  return results
    .map(({ what, outcome, message }) => `${wrapText(`${signs[outcome]} ${what}: ${message}`, columns, "  ")}\n`)
    .join("");
}
