// The second reporter of `npm test`: keeps what the printed report leaves easy to miss (skipped, todo, missing tools)
// and judges it.
import type { TestEvent } from "node:test/reporters";
import { TOOL_UNAVAILABLE_MARK } from "../tests/tools/tool-unavailable.ts";

/** One test that did not simply pass. */
export interface Outcome {
  readonly name: string;
  readonly file: string;
  readonly kind: "failed" | "skipped" | "todo";
  /** The error's text, or the reason given with skip or todo. */
  readonly reason: string;
}

/** Node's reporter interface: events in, lines of JSON out. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  // A file that fails while it is loaded says why only on its standard error.
  const missingTools = new Map<string, string>();
  for await (const event of events) {
    if (event.type === "test:stderr" && event.data.message.includes(TOOL_UNAVAILABLE_MARK)) {
      missingTools.set(event.data.file, event.data.message.slice(event.data.message.indexOf(TOOL_UNAVAILABLE_MARK)));
    }
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { name, file, skip, todo } = event.data;
    const place = { name, file: file ?? "" };
    if (skip !== undefined && skip !== false) yield line({ ...place, kind: "skipped", reason: String(skip) });
    else if (todo !== undefined && todo !== false) yield line({ ...place, kind: "todo", reason: String(todo) });
    else if (event.type === "test:fail") {
      yield line({ ...place, kind: "failed", reason: missingTools.get(name) ?? errorText(event.data.details.error) });
    }
  }
}

export function readOutcomes(jsonLines: string): readonly Outcome[] {
  return jsonLines
    .split("\n")
    .filter((text) => text !== "")
    .map((text) => JSON.parse(text) as Outcome);
}

/**
 * A test that is skipped or marked todo in silence fails the run. Tools that this machine lacks are told by name, in a
 * line each; they fail the run only where every tool must be had.
 */
export function verdict(
  outcomes: readonly Outcome[],
  run: { readonly passed: boolean; readonly needsTools: boolean },
): { readonly ok: boolean; readonly messages: readonly string[] } {
  const messages: string[] = [];
  const toolMissing = (outcome: Outcome) => outcome.reason.includes(TOOL_UNAVAILABLE_MARK);
  const missing = outcomes.filter(toolMissing);
  const hidden = outcomes.filter((outcome) => outcome.kind !== "failed" && !toolMissing(outcome));
  const filesMissing = new Set(missing.map(({ file }) => file));
  // A failed parent only repeats its children, and tests are cancelled when the hook before them fails.
  const isConsequence = ({ reason, file }: Outcome) =>
    /subtests? failed/.test(reason) || (reason.endsWith("was cancelled") && filesMissing.has(file));
  const failures = outcomes.filter(
    (outcome) => outcome.kind === "failed" && !toolMissing(outcome) && !isConsequence(outcome),
  );
  for (const outcome of hidden) messages.push(`${outcome.kind.toUpperCase()} unseen: ${describe(outcome)}`);
  for (const [tool, of] of Map.groupBy(missing, ({ reason }) => toolIn(reason))) {
    const [first, ...more] = of;
    messages.push(
      `NOT RUN: ${first!.name} (${first!.file})${more.length === 0 ? "" : ` and ${more.length} more`}: ${tool}`,
    );
  }
  const missingFails = missing.length > 0 && run.needsTools;
  if (missing.length > 0)
    messages.push(run.needsTools ? "A missing tool is a failure here." : "On CI these would be failures.");
  const onlyTools = missing.length > 0 && failures.length === 0;
  return { ok: hidden.length === 0 && !missingFails && (run.passed || onlyTools), messages };
}

function describe(outcome: Outcome): string {
  return `${outcome.name} (${outcome.file}): ${outcome.reason.split("\n")[0]}`;
}

/** The line that names the tool and what to do. */
function toolIn(reason: string): string {
  return reason.slice(reason.indexOf(TOOL_UNAVAILABLE_MARK)).split("\n", 1)[0]!;
}

function line(outcome: Outcome): string {
  return `${JSON.stringify(outcome)}\n`;
}

function errorText(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) parts.push(at.message);
  return parts.length === 0 ? String(error) : parts.join("\n");
}
