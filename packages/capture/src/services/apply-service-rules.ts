// Puts a node's table into the kernel, by nft(8) in the node's network. What differs from what was put there before is
// one transaction; where that does not fit what is there, the whole table is.
import { applyRules } from "../rules/install-capture.ts";
import { CaptureFailure, type CaptureOptions } from "../rules/network-tools.ts";
import { changeText, removalText, wholeText, type RuleTable } from "./rule-table.ts";
import { serviceTable } from "./service-rules.ts";

/**
 * `before`: what this has put there last; undefined where nobody knows, and the whole table is made anew then.
 * Connections that are there go on in either case; which pod a client stays with is forgotten in the second.
 *
 * @throws {CaptureFailure} the node has what it had before
 */
export async function applyServiceRules(
  table: RuleTable,
  before?: RuleTable,
  options: CaptureOptions = {},
): Promise<void> {
  if (before !== undefined) {
    const change = changeText(before, table);
    if (change === "") return;
    try {
      await applyRules(change, options);
      return;
    } catch (error) {
      // Somebody else has changed the table, or taken it out.
      if (!(error instanceof CaptureFailure)) throw error;
    }
  }
  await applyRules(wholeText(table), options);
}

/** What is not there is no error. @throws {CaptureFailure} */
export async function removeServiceRules(options: CaptureOptions = {}): Promise<void> {
  await applyRules(removalText(serviceTable), options);
}
