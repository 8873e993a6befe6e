// /etc/hosts (hosts(5)): names that a machine knows without asking anybody.
import { isIP } from "node:net";

/** Far more than anybody writes by hand; lists of blocked names are of some megabytes. */
export const maxHostsFileBytes = 16 * 1024 * 1024;

/** Names, in lower case, to their addresses in the order of the file. */
export type HostsTable = ReadonlyMap<string, readonly string[]>;

export function readHosts(text: string): HostsTable {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*$/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const known = hosts.getOrInsert(name.toLowerCase().replace(/\.$/, ""), []);
      if (!known.includes(address)) known.push(address);
    }
  }
  return hosts;
}
