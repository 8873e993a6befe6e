// The address from which a proxy calls its application over IPv6, as it does from 127.0.0.6 over IPv4: all of
// 127.0.0.0/8 is a machine's own, of IPv6 an address has to be added (Istio: ::6).
import { failureOf, runTool, type CaptureOptions } from "./network-tools.ts";

const words = ["-6", "address", "replace", "::6/128", "dev", "lo", "nodad", "preferred_lft", "0"];
/** A network without IPv6 has nothing to add to. */
const isWithoutIpv6 = /not supported|disabled|Permission denied|EACCES/i;

/** @throws {CaptureFailure} */
export async function addPassthroughAddress(options: CaptureOptions = {}): Promise<void> {
  const result = await runTool("ip", words, "", options);
  if (result.exitCode !== 0 && !isWithoutIpv6.test(result.stderr)) throw failureOf("ip", result);
}
