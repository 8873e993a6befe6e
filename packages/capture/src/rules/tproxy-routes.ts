// The routing rule and table that TPROXY needs beside the rules: what has the mark is this machine's, whatever its
// address. ip(8) has no transaction: each step is no error where it is done already.
import { tproxyMark } from "./capture-rules.ts";
import { failureOf, runTool, type CaptureOptions } from "./network-tools.ts";

/** istio-iptables: -r. */
const routeTable = 133;
/** With a place of its own the kernel takes it once. */
const rule = ["pref", String(tproxyMark), "fwmark", String(tproxyMark), "lookup", String(routeTable)];
const isDone = /File exists|No such file or directory|No such process|FIB table does not exist/;
/** A machine without IPv6 has nothing to route. */
const isWithoutIpv6 = /not supported|disabled/;

/** @throws {CaptureFailure} and takes back what it has added */
export async function addRoutes(options: CaptureOptions): Promise<void> {
  try {
    for (const family of ["-4", "-6"]) {
      await ip([family, "rule", "add", ...rule], options);
      await ip([family, "route", "replace", "local", "default", "dev", "lo", "table", String(routeTable)], options);
    }
  } catch (error) {
    await removeRoutes(options).catch(() => undefined);
    throw error;
  }
}

/** @throws {CaptureFailure} */
export async function removeRoutes(options: CaptureOptions): Promise<void> {
  for (const family of ["-4", "-6"]) {
    await ip([family, "rule", "del", ...rule], options);
    await ip([family, "route", "flush", "table", String(routeTable)], options);
  }
}

async function ip(args: readonly string[], options: CaptureOptions): Promise<void> {
  const result = await runTool("ip", args, "", options);
  const isNothing = isDone.test(result.stderr) || (args[0] === "-6" && isWithoutIpv6.test(result.stderr));
  if (result.exitCode !== 0 && !isNothing) throw failureOf("ip", result);
}
