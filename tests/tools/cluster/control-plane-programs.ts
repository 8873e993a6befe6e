// Kubernetes' own control plane, on the first node: etcd, the API server, what acts on its objects, and the cluster's
// name server.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { runCommand } from "../run-command.ts";
import { apiPort, dnsServiceAddress, nodes, serviceRanges } from "./addresses.ts";
import type { ClusterFiles } from "./cluster-certificates.ts";
import type { ProgramRunner } from "./program-runner.ts";

const [first] = nodes;
const [firstAddress] = first.addresses;
/** Where CoreDNS says that it knows the cluster. */
const readyAddress = `${firstAddress}:8181`;
const etcdUrl = "http://127.0.0.1:2379";

export async function startControlPlane(runner: ProgramRunner, files: ClusterFiles, folder: string): Promise<void> {
  const start = (name: string, options: Readonly<Record<string, string>>): void => {
    const args = Object.entries(options).map(([option, value]) => `--${option}=${value}`);
    runner.start(name, [name, ...args], first.name);
  };
  start("etcd", {
    "data-dir": path.join(folder, "etcd"),
    "listen-client-urls": etcdUrl,
    "advertise-client-urls": etcdUrl,
    "listen-peer-urls": "http://127.0.0.1:2380",
    // Power cuts of the machine are no part of the tests.
    "unsafe-no-fsync": "true",
  });
  const audit = await writeAuditPolicy(folder);
  start("kube-apiserver", apiServerOptions(files, folder, audit));
  await runner.ready("kube-apiserver", () => answers(runner, files, "/readyz"));
  start("kube-controller-manager", {
    kubeconfig: files.kubeconfig,
    "service-account-private-key-file": files.accountKey,
    "root-ca-file": files.authority,
    "use-service-account-credentials": "true",
    "leader-elect": "false",
    // A minute without an API server is tried. By its own default (50 s) Kubernetes calls all nodes lost when it is
    // back, and takes their pods out of all Services until the nodes have said that they are there.
    "node-monitor-grace-period": "120s",
  });
  start("kube-scheduler", { kubeconfig: files.kubeconfig, "leader-elect": "false" });
  await startNameServer(runner, files, folder);
}

/** Where requests to the API server are written, one JSON object a line. */
export const auditLog = (folder: string): string => path.join(folder, "logs", "audit.jsonl");

function apiServerOptions(files: ClusterFiles, folder: string, auditPolicy: string): Readonly<Record<string, string>> {
  return {
    "etcd-servers": etcdUrl,
    "secure-port": `${apiPort}`,
    "bind-address": "::",
    "advertise-address": firstAddress,
    "tls-cert-file": files.apiCertificate,
    "tls-private-key-file": files.apiKey,
    "client-ca-file": files.authority,
    "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
    "service-account-signing-key-file": files.accountKey,
    "service-account-key-file": files.accountKey,
    "authorization-mode": "Node,RBAC",
    "service-cluster-ip-range": serviceRanges.join(","),
    "kubelet-client-certificate": files.adminCertificate,
    "kubelet-client-key": files.adminKey,
    "kubelet-preferred-address-types": "InternalIP",
    "allow-privileged": "true",
    "audit-policy-file": auditPolicy,
    "audit-log-path": auditLog(folder),
  };
}

/** Who asked for what, without contents: what a chart grants is compared with it. */
async function writeAuditPolicy(folder: string): Promise<string> {
  const file = path.join(folder, "audit-policy.json");
  await mkdir(path.dirname(auditLog(folder)), { recursive: true });
  const policy = {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    omitStages: ["RequestReceived"],
    rules: [
      { level: "None", users: ["admin", "system:apiserver", "system:kube-scheduler"] },
      { level: "None", userGroups: ["system:nodes"] },
      { level: "None", userGroups: ["system:serviceaccounts:kube-system"] },
      { level: "Metadata" },
    ],
  };
  await writeFile(file, JSON.stringify(policy));
  return file;
}

/** As a program of the first node, behind the Service that pods' settings name. */
async function startNameServer(runner: ProgramRunner, files: ClusterFiles, folder: string): Promise<void> {
  const corefile = path.join(folder, "Corefile");
  const zones = "cluster.local in-addr.arpa ip6.arpa";
  await writeFile(
    corefile,
    `.:53 {
  bind ${first.addresses.join(" ")}
  errors
  ready ${readyAddress}
  kubernetes ${zones} {
    kubeconfig ${files.kubeconfig} test
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
}
`,
  );
  await apply(runner, files, nameServerObjects);
  runner.start("coredns", ["coredns", "-conf", corefile], first.name);
  await runner.ready("coredns", async () => (await fetch(`http://${readyAddress}/ready`)).ok);
}

const dnsPorts = (["UDP", "TCP"] as const).map((protocol) => ({
  name: `dns-${protocol.toLowerCase()}`,
  protocol,
  port: 53,
}));

const nameServerObjects = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kube-dns", namespace: "kube-system", labels: { "k8s-app": "kube-dns" } },
    spec: { clusterIP: dnsServiceAddress, ports: dnsPorts },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "kube-dns-node",
      namespace: "kube-system",
      labels: { "kubernetes.io/service-name": "kube-dns" },
    },
    addressType: "IPv4",
    endpoints: [{ addresses: [firstAddress], conditions: { ready: true } }],
    ports: dnsPorts,
  },
];

async function answers(runner: ProgramRunner, files: ClusterFiles, url: string): Promise<boolean> {
  return (await kubectl(runner, files, ["get", "--raw", url])).code === 0;
}

async function apply(runner: ProgramRunner, files: ClusterFiles, items: readonly object[]): Promise<void> {
  const file = `${files.kubeconfig}.objects.json`;
  await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const { code, stderr } = await kubectl(runner, files, ["apply", "-f", file]);
  if (code !== 0) throw new Error(`the API server does not take the cluster's own objects: ${stderr}`);
}

const kubectl = (runner: ProgramRunner, files: ClusterFiles, args: readonly string[]) =>
  runCommand("kubectl", [`--kubeconfig=${files.kubeconfig}`, ...args], { env: runner.environment });
