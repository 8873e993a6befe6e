// Which addresses the control plane fetches keys from. A policy's author names the URL, so that it must not become a
// way to what only this machine may ask: metadata services of clouds above all.
import { BlockList, isIP } from "node:net";
import { metadataServers } from "@tulle/capture";

/** Loopback and private addresses stay: an issuer of the mesh, or of the laptop, is at one. */
const refused = new BlockList();
refused.addSubnet("0.0.0.0", 8, "ipv4");
refused.addSubnet("169.254.0.0", 16, "ipv4");
refused.addSubnet("224.0.0.0", 3, "ipv4");
refused.addAddress("::", "ipv6");
refused.addSubnet("fe80::", 10, "ipv6");
refused.addSubnet("ff00::", 8, "ipv6");
for (const each of metadataServers) refused.addAddress(each, isIP(each) === 4 ? "ipv4" : "ipv6");

/** Neither "this host", nor link-local, nor multicast, nor the metadata address of a cloud. */
export function isFetchableAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && !refused.check(address, family === 4 ? "ipv4" : "ipv6");
}
