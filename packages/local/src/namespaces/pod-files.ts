// The files of a pod that are not the machine's: whom it asks for names, and what it is called itself; and what its
// proxy alone is given.
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { podResolverFile } from "@tulle/capture/dns";
import { clusterDns } from "./addresses.ts";
import { proxyUser } from "./program-start.ts";

export interface PodNames {
  readonly name: string;
  readonly namespace: string;
  readonly ips: readonly string[];
}

/** As a kubelet writes them (`dnsPolicy: ClusterFirst`). */
export function podFiles({ name, namespace, ips }: PodNames): Readonly<Record<string, string>> {
  const hosts = [
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    ...ips.map((ip) => `${ip}\t${name}`),
  ];
  return {
    "resolv.conf": podResolverFile({ namespace, servers: [clusterDns] }),
    hosts: `${hosts.join("\n")}\n`,
    // Names are asked for by DNS alone, not by a program of the machine's.
    "nsswitch.conf":
      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n",
  };
}

/** Answers which is mounted over which of the machine's. */
export function writePodFiles(folder: string, names: PodNames): readonly (readonly [string, string])[] {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return Object.entries(podFiles(names)).map(([name, text]) => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o644 });
    return [file, path.join("/etc", name)];
  });
}

/** A folder that its owner writes and the proxy's group reads. */
export function makeGivenFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  chownSync(folder, process.geteuid!(), proxyUser);
  chmodSync(folder, 0o750);
}

/** Replaces what the proxy was given by that name in one step; nobody else reads it. */
export async function giveToProxy(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.chown(process.geteuid!(), proxyUser);
      await handle.chmod(0o640);
      await handle.writeFile(text);
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
