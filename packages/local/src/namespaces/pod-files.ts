// The files of a pod that are not the machine's: whom it asks for names, and what it is called itself. They are mounted
// over the machine's in a mount namespace of the pod's own.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import path from "node:path";
import { podResolverFile } from "@tulle/capture/dns";
import { clusterDns } from "./addresses.ts";
import type { SystemPrograms } from "./system-programs.ts";

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

/** What the machine does with its mounts goes on in the pod, and not the other way round. */
const script = `
for name in resolv.conf hosts nsswitch.conf; do
  [ -e "/etc/$name" ] || { echo "there is no file /etc/$name to mount over" >&2; exit 1; }
  "$1" --bind "$2/$name" "/etc/$name" || exit 1
done
echo made
read -r _
`;

/** A descriptor of the mount namespace. Rejects in words for people. */
export async function mountPodFiles(
  folder: string,
  names: PodNames,
  { unshare, mount }: SystemPrograms,
): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(podFiles(names)))
    writeFileSync(path.join(folder, name), text, { mode: 0o644 });
  const words = ["--mount", "--propagation", "slave", "--", "/bin/sh", "-c", script, "pod-files", mount, folder];
  const child = spawn(unshare, words, { stdio: ["pipe", "pipe", "pipe"], env: { PATH: "/usr/bin:/bin", LC_ALL: "C" } });
  child.stdin.on("error", () => undefined);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdout.once("data", () => resolve());
  child.once("error", reject);
  const ended = new Promise<void>((resolveEnd) => child.once("close", () => resolveEnd()));
  void ended.then(() => reject(new Error(`its files cannot be mounted: ${said.trim()}`)));
  try {
    await promise;
    return openSync(`/proc/${child.pid}/ns/mnt`, "r");
  } finally {
    child.stdin.end();
    await ended;
  }
}

export function closeMounts(descriptor: number): void {
  closeSync(descriptor);
}
