// The programs that a cluster is made of: Kubernetes' own, etcd, CoreDNS, kubectl and Helm from their Go modules, and
// what runs containers from Debian's packages, unpacked beside them: nothing is installed on the machine.
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { digestOf, exists } from "../cache.ts";
import { debianFolder } from "../debian-folder.ts";
import { debianTool } from "../debian-tool.ts";
import { lastLines, runCommand } from "../run-command.ts";
import { ToolUnavailable } from "../tool-unavailable.ts";

const sources = path.resolve(import.meta.dirname, "programs");

/** Kubernetes' version, as the programs tell it; the module's is in go.mod. */
export const kubernetesVersion = "v1.34.4";

/** Tulle's own images are there under this version, too, for upgrades. */
export const nextVersion = "0.2.0";

/** All of them are one binary, which answers to the name it is called by. */
const names = [
  "etcd",
  "coredns",
  "kubectl",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kube-proxy",
  "kubelet",
] as const;

export interface ClusterPrograms {
  /** Folders of programs, for PATH. */
  readonly folders: readonly string[];
  /** For LD_LIBRARY_PATH. */
  readonly libraryPath: string;
  /** Folder of the plug-ins that give pods their networks. */
  readonly networkPlugins: string;
}

/** Builds and fetches what is not there yet: some minutes the first time. @throws {ToolUnavailable} */
export async function clusterPrograms(): Promise<ClusterPrograms> {
  for (const tool of ["iproute2", "nftables", "conntrack", "openssl"] as const) await debianTool(tool);
  const [built, containers, busybox] = await Promise.all([
    buildPrograms(),
    debianFolder(["containerd", "runc", "containernetworking-plugins"]),
    debianFolder(["busybox-static"]),
  ]);
  return {
    folders: [
      built,
      ...["usr/bin", "usr/sbin"].map((folder) => path.join(containers.root, folder)),
      path.join(busybox.root, "bin"),
    ],
    libraryPath: containers.libraryPath,
    networkPlugins: path.join(containers.root, "usr/lib/cni"),
  };
}

/**
 * Where they lie: outside of the clone, since the first build takes minutes and a new clone needs the same. What Go
 * compiled lies in its own cache besides.
 */
function buildFolder(digest: string): string {
  const caches = process.env["XDG_CACHE_HOME"] ?? path.join(homedir(), ".cache");
  return path.join(caches, "tulle", `kubernetes-${digest}`);
}

async function buildPrograms(): Promise<string> {
  const folder = buildFolder(await digestOf(sources, "{go.mod,go.sum,*.go}"));
  if (await exists(folder)) return folder;
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  try {
    const versions = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    const flags = ["-s", "-w", ...versions.map((name) => `-X ${name}.gitVersion=${kubernetesVersion}`)].join(" ");
    await goBuild([`-ldflags=${flags}`, "-o", path.join(draft, "cluster"), "."]);
    await goBuild(["-ldflags=-s -w", "-o", path.join(draft, "helm"), "helm.sh/helm/v3/cmd/helm"]);
    for (const name of names) await symlink("cluster", path.join(draft, name));
    await rename(draft, folder);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return folder;
}

async function goBuild(args: readonly string[]): Promise<void> {
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/local/go/bin`, CGO_ENABLED: "0" };
  const minutes = 30;
  const options = { cwd: sources, env, timeoutMs: minutes * 60_000 };
  const built = await runCommand("go", ["build", "-trimpath", ...args], options);
  if (built.code === 0) return;
  if (built.code === null) {
    const next = "what is built is kept: start it again, with less beside it";
    throw new ToolUnavailable("Kubernetes", `was not built within ${minutes} minutes; ${next}`);
  }
  throw new ToolUnavailable("Kubernetes", `needs go of the version in ${sources}/go.mod: ${lastLines(built)}`);
}
