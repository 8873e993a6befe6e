// What runs on each node: containerd, the kubelet and kube-proxy, in the node's own network, with a cgroup root of
// their own, or the two kubelets would remove each other's pods.
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "../run-command.ts";
import { dnsServiceAddress, podRanges, type NodePlace } from "./addresses.ts";
import { makeGroup } from "./cluster-group.ts";
import type { ClusterFiles } from "./cluster-certificates.ts";
import type { ClusterPrograms } from "./cluster-programs.ts";
import type { ProgramRunner } from "./program-runner.ts";

/** Does nothing: holds a pod's network. */
export const pauseImage = "localhost/pause:1";

interface NodeStart {
  readonly programs: ClusterPrograms;
  readonly runner: ProgramRunner;
  readonly files: ClusterFiles;
  /** Of this cluster; the node's lies in it. */
  readonly folder: string;
  /** Below each controller; one node's. */
  readonly cgroup: string;
  /** Archives of images that its pods may use. */
  readonly images: readonly string[];
}

export async function startNode(node: NodePlace, start: NodeStart): Promise<void> {
  const { programs, runner, files } = start;
  const folder = path.join(start.folder, node.name);
  await mkdir(path.join(folder, "cni"), { recursive: true });
  // A folder of its own, in which an installation puts plug-ins.
  await mkdir(path.join(folder, "cni-bin"));
  for (const name of await readdir(programs.networkPlugins)) {
    await symlink(path.join(programs.networkPlugins, name), path.join(folder, "cni-bin", name));
  }
  await makeGroup(start.cgroup);
  const socket = path.join(folder, "containerd.sock");
  await writeFile(path.join(folder, "cni", "10-bridge.conflist"), JSON.stringify(podNetwork(node, folder)));
  await writeFile(path.join(folder, "containerd.toml"), containerdSettings(node, folder, socket));
  runner.start(`containerd-${node.name}`, ["containerd", "-c", path.join(folder, "containerd.toml")], node.name);
  const ctr = (...args: string[]) =>
    runCommand("ctr", [`--address=${socket}`, "--namespace=k8s.io", ...args], { env: runner.environment });
  await runner.ready(`containerd-${node.name}`, async () => (await ctr("version")).code === 0);
  for (const image of start.images) {
    const imported = await ctr("images", "import", image);
    if (imported.code !== 0) throw new Error(`containerd does not take ${image}: ${lastLines(imported)}`);
  }
  const settings = path.join(folder, "kubelet.json");
  await writeFile(settings, JSON.stringify(kubeletSettings(start, folder, socket)));
  const kubelet = [
    "kubelet",
    `--kubeconfig=${files.kubeconfig}`,
    `--config=${settings}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${node.addresses.join(",")}`,
    `--node-labels=topology.kubernetes.io/region=test,topology.kubernetes.io/zone=${node.zone}`,
    `--root-dir=${path.join(folder, "kubelet")}`,
    `--cert-dir=${path.join(folder, "certificates")}`,
  ];
  runner.start(`kubelet-${node.name}`, kubelet, node.name);
  const proxy = [
    "kube-proxy",
    `--kubeconfig=${files.kubeconfig}`,
    `--hostname-override=${node.name}`,
    "--proxy-mode=nftables",
    `--cluster-cidr=${podRanges.join(",")}`,
    "--conntrack-max-per-core=0",
  ];
  runner.start(`kube-proxy-${node.name}`, proxy, node.name);
}

function podNetwork(node: NodePlace, folder: string): object {
  return {
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: path.join(folder, "addresses"),
          ranges: node.podRanges.map((subnet) => [{ subnet }]),
          routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
        },
      },
      { type: "loopback" },
    ],
  };
}

/** `restrict_oom_score_adj`: machines that may not lower it, as many that are containers themselves, still run pods. */
function containerdSettings(node: NodePlace, folder: string, socket: string): string {
  return `version = 2
root = "${folder}/root"
state = "${folder}/state"
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  restrict_oom_score_adj = true
  stream_server_address = "${node.addresses[0]}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${folder}/cni-bin"
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
`;
}

function kubeletSettings({ files, cgroup }: NodeStart, folder: string, socket: string): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroup}`,
    podLogsDir: path.join(folder, "pod-logs"),
    oomScoreAdj: 0,
    failSwapOn: false,
    failCgroupV1: false,
    containerRuntimeEndpoint: `unix://${socket}`,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: files.authority },
    },
    authorization: { mode: "Webhook" },
    clusterDNS: [dnsServiceAddress],
    clusterDomain: "cluster.local",
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "imagefs.available": "1%",
      "nodefs.inodesFree": "1%",
    },
    localStorageCapacityIsolation: false,
    enforceNodeAllocatable: [],
    // Names of pods that are not of the cluster are nobody's here.
    resolvConf: "",
  };
}
