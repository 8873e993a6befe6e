// What installs the CNI plug-in: the DaemonSet whose program captures pods on each node, and the rights that it needs.
import { images, rootNamespace } from "../names.ts";
import { pluginType } from "./network-list.ts";

export interface CniSettings {
  /** Of the DaemonSet and all that belongs to it. */
  readonly name: string;
  /** `tulle/cni:1.0.0` */
  readonly image: string;
  /** The runtime's folders on the nodes. */
  readonly configurationFolder: string;
  readonly programFolder: string;
  /** Where the plug-in's socket lies; this program's alone. */
  readonly socketFolder: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Pods there start without the plug-in; this program's own namespace among them. */
  readonly excludeNamespaces: readonly string[];
}

export function cniSettings(version: string): CniSettings {
  return {
    name: "tulle-cni",
    image: `${images.cni}:${version}`,
    configurationFolder: "/etc/cni/net.d",
    programFolder: "/opt/cni/bin",
    socketFolder: "/run/tulle-cni",
    nodeSelector: { "kubernetes.io/os": "linux" },
    excludeNamespaces: [rootNamespace, "kube-system"],
  };
}

/** As the container sees what the runtime keeps. */
const seen = {
  configuration: "/host/etc/cni/net.d",
  programs: "/host/opt/cni/bin",
  networks: "/var/run/netns",
} as const;

export function cniObjects(settings: CniSettings): readonly object[] {
  const { name } = settings;
  const metadata = { name, namespace: rootNamespace, labels: { app: name, "app.kubernetes.io/part-of": "tulle" } };
  const { namespace: _, ...clusterMetadata } = metadata;
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: clusterMetadata,
      rules: [
        { apiGroups: [""], resources: ["pods"], verbs: ["get", "list"] },
        { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
        // Whether it is being uninstalled.
        { apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: [name], verbs: ["get"] },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: clusterMetadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace: rootNamespace }],
    },
    {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata,
      spec: {
        selector: { matchLabels: { app: name } },
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
        template: { metadata: { labels: metadata.labels }, spec: podSpec(settings) },
      },
    },
  ];
}

function podSpec(settings: CniSettings): object {
  const { name, image, configurationFolder, programFolder, socketFolder, nodeSelector, excludeNamespaces } = settings;
  const field = (variable: string, fieldPath: string): object => ({
    name: variable,
    valueFrom: { fieldRef: { fieldPath } },
  });
  return {
    serviceAccountName: name,
    // It works where the nodes' own network does, and no other pod does without it.
    hostNetwork: true,
    dnsPolicy: "ClusterFirstWithHostNet",
    priorityClassName: "system-node-critical",
    tolerations: [{ operator: "Exists" }],
    nodeSelector,
    containers: [
      {
        name: pluginType,
        image,
        args: [
          `--conf-dir=${seen.configuration}`,
          `--bin-dir=${seen.programs}`,
          `--networks-dir=${seen.networks}`,
          `--socket-dir=${socketFolder}`,
          `--exclude-namespaces=${excludeNamespaces.join(",")}`,
        ],
        env: [
          field("NODE_NAME", "spec.nodeName"),
          field("POD_NAMESPACE", "metadata.namespace"),
          { name: "TULLE_CNI_DAEMON_SET", value: name },
        ],
        resources: { requests: { cpu: "20m", memory: "64Mi" } },
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
          { name: "socket", mountPath: socketFolder },
          // Networks of pods that come later are mounted there.
          { name: "networks", mountPath: seen.networks, mountPropagation: "HostToContainer", readOnly: true },
        ],
      },
    ],
    volumes: [
      { name: "configuration", hostPath: { path: configurationFolder } },
      { name: "programs", hostPath: { path: programFolder } },
      { name: "socket", hostPath: { path: socketFolder, type: "DirectoryOrCreate" } },
      { name: "networks", hostPath: { path: seen.networks } },
    ],
  };
}
