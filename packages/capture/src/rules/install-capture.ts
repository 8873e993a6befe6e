// Puts rules into the kernel and takes them out by nft(8), one transaction a call: the kernel has all of it or what it
// had before. A failure says what is missing on the machine.
import { captureRules, captureTable, removalRules } from "./capture-rules.ts";
import type { CapturePlan } from "./capture-plan.ts";
import { CaptureFailure, failureOf, runTool, type CaptureOptions } from "./network-tools.ts";
import { addRoutes, removeRoutes } from "./tproxy-routes.ts";

/**
 * Makes the table, or replaces it, and looks whether the kernel has it.
 *
 * @throws {CaptureFailure}
 */
export async function installCapture(plan: CapturePlan, options: CaptureOptions = {}): Promise<void> {
  const rules = captureRules(plan);
  const before = (await installedRules(options)) ?? "";
  const hadRoutes = before.includes(routedRule);
  if (plan.mode === "TPROXY") await addRoutes(options);
  try {
    await applyRules(rules, options);
  } catch (error) {
    // Half of it must not stay. Where even that fails, the reason is the first one.
    if (plan.mode === "TPROXY" && !hadRoutes) await removeRoutes(options).catch(() => undefined);
    throw error;
  }
  if (plan.mode === "REDIRECT" && hadRoutes) await removeRoutes(options);
  const found = countVerdicts((await installedRules(options)) ?? "");
  const sent = countVerdicts(rules);
  if (found === sent) return;
  await removeCapture(options).catch(() => undefined);
  throw new CaptureFailure(
    `nft took the rules, but the kernel has ${found} of ${sent}; they were removed again. Does another program change ` +
      `the table ${captureTable}?`,
  );
}

/** What is not there is no error. @throws {CaptureFailure} */
export async function removeCapture(options: CaptureOptions = {}): Promise<void> {
  const before = (await installedRules(options)) ?? "";
  await applyRules(removalRules, options);
  if (before.includes(routedRule)) await removeRoutes(options);
}

/** Where this stands among the rules, routes belong to them. */
const routedRule = "chain transparent_answers";

/** The table as nft prints it; undefined where there is none. @throws {CaptureFailure} */
export async function installedRules(options: CaptureOptions = {}): Promise<string | undefined> {
  const result = await runTool("nft", ["list", "table", "inet", captureTable], "", options);
  if (result.exitCode === 0) return result.stdout;
  if (/No such file or directory/.test(result.stderr)) return undefined;
  throw failureOf("nft", result);
}

/** One transaction. @throws {CaptureFailure} */
export async function applyRules(rules: string, options: CaptureOptions = {}): Promise<void> {
  const result = await runTool("nft", ["-f", "-"], rules, options);
  if (result.exitCode !== 0) throw failureOf("nft", result);
}

/** Rules are counted, since each version of nft writes them in its own way. */
function countVerdicts(rules: string): number {
  const lines = rules.split("\n").filter((line) => !/^\s*(?:#|type )/.test(line));
  return lines.filter((line) => /\b(?:accept|goto|redirect|reject|zone set|mark set)\b/.test(line)).length;
}
