// Where the processes of a group listen, for messages: a program that takes no notice of HOST and PORT is told where it is instead.
import { readFile, readdir, readlink } from "node:fs/promises";

const stateListen = "0A";

/** `address:port` of each listening socket of the process group, in the order of the ports. Empty where that cannot be known. */
export async function groupListeners(groupId: number): Promise<readonly string[]> {
  const inodes = new Set<string>();
  for (const pid of (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    // proc_pid_stat(5): after the name in parentheses come state, parent and group.
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    const [, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (Number(group) !== groupId) continue;
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => "");
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined) inodes.add(inode);
    }
  }
  if (inodes.size === 0) return [];
  const found = (await Promise.all([listeners("/proc/net/tcp"), listeners("/proc/net/tcp6")])).flat();
  return found
    .filter(({ inode }) => inodes.has(inode))
    .toSorted((a, b) => a.port - b.port)
    .map(({ address, port }) => `${address}:${port}`);
}

interface Listener {
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

async function listeners(table: string): Promise<readonly Listener[]> {
  const lines = (await readFile(table, "utf8").catch(() => "")).split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, where = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    if (state !== stateListen) return [];
    const [host = "", port = ""] = where.split(":");
    return [{ address: addressText(host), port: Number.parseInt(port, 16), inode }];
  });
}

/** The kernel writes words of 32 bits in its own byte order. */
function addressText(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) =>
    (word.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16)),
  );
  const isMapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255;
  if (bytes.length === 4 || isMapped) return bytes.slice(-4).join(".");
  if (bytes.every((byte) => byte === 0)) return "[::]";
  if (bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15] === 1) return "[::1]";
  return `[${(Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join(":")}]`;
}
