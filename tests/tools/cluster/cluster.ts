// A Kubernetes cluster of two nodes, made of the real programs, in the namespaces of the process that starts it: when
// that one ends, however it ends, everything here ends. Only cgroups outlive it; see `cluster-group.ts`.
import { cp, mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import { writeImageArchive } from "../../../tools/images/image-archive.ts";
import { debianFolder } from "../debian-folder.ts";
import { runCommand } from "../run-command.ts";
import { nodes } from "./addresses.ts";
import { writeClusterFiles } from "./cluster-certificates.ts";
import { joinNewGroup } from "./cluster-group.ts";
import { clusterPrograms } from "./cluster-programs.ts";
import { startControlPlane } from "./control-plane-programs.ts";
import { makeNetworks } from "./networks.ts";
import { pauseImage, startNode } from "./node-programs.ts";
import { ProgramRunner } from "./program-runner.ts";

export interface Cluster {
  /** Of files, logs among them. */
  readonly folder: string;
  readonly kubeconfig: string;
  /** For programs that shall find the cluster, and its tools. */
  readonly environment: NodeJS.ProcessEnv;
}

/** Resolves once both nodes are ready. `images` are archives that pods may use. */
export async function startCluster(images: readonly string[]): Promise<Cluster> {
  const programs = await clusterPrograms();
  const { name: group, folder } = await joinNewGroup();
  await mkdir(path.join(folder, "logs"));
  const runner = new ProgramRunner(programs, path.join(folder, "logs"));
  const files = await writeClusterFiles(path.join(folder, "files"));
  await makeNetworks();
  const pause = await writePauseImage(folder);
  await startControlPlane(runner, files, folder);
  await Promise.all(
    nodes.map((node) =>
      startNode(node, {
        programs,
        runner,
        files,
        folder,
        cgroup: `${group}/${node.name}`,
        images: [pause, ...images],
      }),
    ),
  );
  const environment = { ...runner.environment, KUBECONFIG: files.kubeconfig };
  const isReady = async (name: string): Promise<boolean> => {
    const wait = ["wait", "node", name, "--for=condition=Ready", "--timeout=5s"];
    const { code, stderr } = await runCommand("kubectl", wait, { env: environment });
    if (code !== 0) throw new Error(stderr);
    return true;
  };
  await Promise.all(nodes.map(({ name }) => runner.ready(`kubelet-${name}`, () => isReady(name))));
  return { folder, kubeconfig: files.kubeconfig, environment };
}

async function writePauseImage(folder: string): Promise<string> {
  const { root } = await debianFolder(["busybox-static"]);
  const bin = path.join(folder, "pause", "bin");
  await mkdir(bin, { recursive: true });
  await cp(path.join(root, "bin", "busybox"), path.join(bin, "busybox"));
  await symlink("busybox", path.join(bin, "sleep"));
  const file = path.join(folder, "pause.tar");
  const layers = [{ name: "pause", folder: path.join(folder, "pause") }];
  await writeImageArchive(file, [{ reference: pauseImage, layers, entrypoint: ["/bin/sleep", "2147483647"] }]);
  return file;
}
