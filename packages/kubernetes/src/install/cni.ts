// The CNI plug-in: the DaemonSet whose program captures pods on each node, so that pods need no capability, and the
// rights that it needs.
import { pluginType } from "../cni/network-list.ts";
import { partOf } from "./installed-labels.ts";
import { pullSecrets, scheduling } from "./pod-parts.ts";
import { joined, type Manifest, releaseNamespace, type Template, value } from "./template.ts";

const name = value("cni.name");

/** As the container sees what the runtime keeps. */
const seen = {
  configuration: "/host/etc/cni/net.d",
  programs: "/host/opt/cni/bin",
  networks: "/var/run/netns",
} as const;

export function cniManifests(): readonly Manifest[] {
  const labels = { ...partOf("cni"), app: name };
  const metadata = { name, namespace: releaseNamespace, labels };
  const ofCluster = { name, labels };
  const rbac = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRole",
      metadata: ofCluster,
      rules: [
        // What runs in a pod decides whether it is captured; those that slipped through are looked for.
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
        { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
        // Whether it is being uninstalled.
        { apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: [name], verbs: ["get"] },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: ofCluster,
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace: releaseNamespace }],
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata,
      spec: {
        selector: { matchLabels: { app: name } },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
        template: { metadata: { labels, annotations: value("cni.podAnnotations") }, spec: podSpec() },
      },
    },
  ];
}

function podSpec(): Template {
  const field = (variable: string, fieldPath: string): Template => ({
    name: variable,
    valueFrom: { fieldRef: { fieldPath } },
  });
  return {
    serviceAccountName: name,
    ...pullSecrets,
    // It works where the nodes' own network does, and no other pod does without it.
    hostNetwork: true,
    dnsPolicy: "ClusterFirstWithHostNet",
    priorityClassName: "system-node-critical",
    ...scheduling("cni"),
    containers: [
      {
        name: pluginType,
        image: joined(value("global.hub"), "/cni:", value("global.tag")),
        imagePullPolicy: value("global.imagePullPolicy"),
        args: [
          `--conf-dir=${seen.configuration}`,
          `--bin-dir=${seen.programs}`,
          `--networks-dir=${seen.networks}`,
          joined("--socket-dir=", value("cni.socketDir")),
          joined("--exclude-namespaces=", releaseNamespace, ",", value("cni.excludeNamespaces")),
        ],
        env: [
          field("NODE_NAME", "spec.nodeName"),
          field("POD_NAMESPACE", "metadata.namespace"),
          { name: "TULLE_CNI_DAEMON_SET", value: name },
        ],
        resources: value("cni.resources"),
        securityContext: {
          runAsUser: 0,
          runAsGroup: 0,
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          // To enter the network of a pod, and to make rules there.
          capabilities: { drop: ["ALL"], add: ["SYS_ADMIN", "NET_ADMIN"] },
          seccompProfile: { type: "RuntimeDefault" },
        },
        volumeMounts: [
          { name: "configuration", mountPath: seen.configuration },
          { name: "programs", mountPath: seen.programs },
          { name: "socket", mountPath: value("cni.socketDir") },
          // Networks of pods that come later are mounted there.
          { name: "networks", mountPath: seen.networks, mountPropagation: "HostToContainer", readOnly: true },
        ],
      },
    ],
    volumes: [
      { name: "configuration", hostPath: { path: value("cni.cniConfDir") } },
      { name: "programs", hostPath: { path: value("cni.cniBinDir") } },
      { name: "socket", hostPath: { path: value("cni.socketDir"), type: "DirectoryOrCreate" } },
      { name: "networks", hostPath: { path: seen.networks } },
    ],
  };
}
