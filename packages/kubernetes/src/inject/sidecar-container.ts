// The proxy's container: `tulle agent` with its settings in the environment (packages/agent/src/settings.ts, and for
// what only the pod knows packages/agent/src/pod/pod-environment.ts), beside an application or as a gateway, and the
// volumes that it reads.
import type { MetricsAnnotations } from "@tulle/config";
import { proxyUser, rootsConfigMap, workloadPaths } from "../names.ts";

export interface ProxyContainerSettings {
  readonly name: string;
  readonly type: "sidecar" | "router";
  /**
   * `native`: an init container that goes on running; Kubernetes starts the others when it is ready and ends it after
   * them. `plain`: the first of the pod's containers, whose start holds the others back where `holdsApplication`.
   * `gateway`: the pod's own program.
   */
  readonly form: "native" | "plain" | "gateway";
  readonly holdsApplication: boolean;
  readonly proxy: "tulle" | "envoy";
  readonly image: string;
  readonly imagePullPolicy: string | undefined;
  readonly logLevel: string;
  readonly resources: { readonly requests: object; readonly limits: object };
  readonly interceptionMode: "REDIRECT" | "TPROXY" | "NONE";
  /** `host:port` of the control plane's xDS server. */
  readonly controlPlaneAddress: string;
  readonly trustDomain: string;
  readonly clusterDomain: string;
  readonly clusterId: string;
  readonly network: string | undefined;
  /** Undefined for a pod that has no name yet, and nobody owns. */
  readonly workload: { readonly name: string; readonly owner: string } | undefined;
  /** Names of the application's containers. */
  readonly applicationContainers: readonly string[];
  /** Ports that they list. */
  readonly applicationPorts: readonly object[];
  /** Path at the agent (`/app-health/web/readyz`) → the probe that it asks there, as the container had it. */
  readonly probes: Readonly<Record<string, object>>;
  readonly mergedMetrics: MetricsAnnotations | undefined;
  readonly proxyConfig: {
    readonly concurrency?: number;
    readonly terminationDrainMs?: number;
    readonly drainMs?: number;
  };
  /** Environment as the mesh and the pod have it; the pod's beats the mesh's. */
  readonly proxyMetadata: Readonly<Record<string, string>>;
  /** How long programs of a pod that leaves are kept at most; undefined = the agent's own time. */
  readonly longestHoldMs: number | undefined;
  /** The init container after it ends when this is ready. */
  readonly isAwaited: boolean;
  readonly readiness: {
    readonly initialDelaySeconds: number;
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly userVolumeMounts: readonly object[];
}

/** As Kubernetes' API has them; `inject` reads and writes no more fields of them than these. */
export interface NamedObject {
  readonly name: string;
  readonly [field: string]: unknown;
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

const readyPort = 15_021;
const metricsPort = 15_090;
const dnsAddress = "localhost:15053";

/** In the images. */
const tulle = "/usr/local/bin/tulle";

/**
 * Of the container's memory, the part that V8 may keep objects in: the runtime reads the limit itself where the
 * container runs, a changed one too. The rest is for what lies outside of it, buffers and code.
 */
const heapPercentage = 65;
/** See `packages/local/src/pod/sidecar.ts`: a gateway, which is there once, keeps V8's own. */
const sidecarYoungGeneration = "--max-semi-space-size=4";

export function proxyContainer(settings: ProxyContainerSettings): NamedObject {
  const { form, isAwaited, readiness } = settings;
  const ready = { path: "/healthz/ready", port: readyPort };
  return {
    name: settings.name,
    image: settings.image,
    ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
    ...(form === "native" ? { restartPolicy: "Always" } : {}),
    ports: [{ name: "http-envoy-prom", containerPort: metricsPort, protocol: "TCP" }],
    env: environment(settings),
    // Native, and nothing else waits for it: the kubelet starts the next container when this has succeeded once.
    ...(form === "native" && !isAwaited
      ? { startupProbe: { httpGet: ready, periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 600 } }
      : {}),
    readinessProbe: { httpGet: ready, timeoutSeconds: 3, ...readiness },
    ...(form === "plain" && settings.holdsApplication
      ? { lifecycle: { postStart: { exec: { command: [tulle, "agent", "wait"] } } } }
      : {}),
    resources: settings.resources,
    securityContext: securityContext(settings),
    volumeMounts: [
      { name: "tulle-token", mountPath: workloadPaths.token.folder, readOnly: true },
      { name: "tulle-roots", mountPath: workloadPaths.roots, readOnly: true },
      { name: "tulle-podinfo", mountPath: workloadPaths.pod, readOnly: true },
      { name: "tulle-state", mountPath: workloadPaths.state },
      ...settings.userVolumeMounts,
    ],
  };
}

export function proxyVolumes(): readonly NamedObject[] {
  const { token } = workloadPaths;
  return [
    {
      name: "tulle-token",
      projected: {
        sources: [
          {
            serviceAccountToken: {
              path: token.file,
              audience: "istio-ca",
              expirationSeconds: token.expirationSeconds,
            },
          },
        ],
      },
    },
    { name: "tulle-roots", configMap: { name: rootsConfigMap.name } },
    {
      name: "tulle-podinfo",
      downwardAPI: {
        items: ["labels", "annotations"].map((path) => ({ path, fieldRef: { fieldPath: `metadata.${path}` } })),
      },
    },
    { name: "tulle-state", emptyDir: { medium: "Memory" } },
  ];
}

/**
 * Whether the agent answers the pod's DNS questions. Then capture has to lead them to it: `--capture-all-dns`, since
 * the CNI plug-in acts before there is a resolv.conf to read.
 */
export function answersDns({
  type,
  interceptionMode,
  proxyMetadata,
}: Pick<ProxyContainerSettings, "type" | "interceptionMode" | "proxyMetadata">): boolean {
  return type === "sidecar" && interceptionMode !== "NONE" && proxyMetadata["ISTIO_META_DNS_CAPTURE"] !== "false";
}

function securityContext({ interceptionMode, type }: ProxyContainerSettings): object {
  // A transparent socket takes NET_ADMIN, which only root keeps; its group is exempt from capture as the user is.
  const isTransparent = interceptionMode === "TPROXY" && type === "sidecar";
  return {
    allowPrivilegeEscalation: false,
    capabilities: { ...(isTransparent ? { add: ["NET_ADMIN"] } : {}), drop: ["ALL"] },
    privileged: false,
    readOnlyRootFilesystem: true,
    runAsGroup: proxyUser,
    runAsNonRoot: !isTransparent,
    runAsUser: isTransparent ? 0 : proxyUser,
    seccompProfile: { type: "RuntimeDefault" },
  };
}

function environment(settings: ProxyContainerSettings): readonly Variable[] {
  const own = [...ofPod(settings), ...ofMesh(settings)];
  const taken = new Set(own.map(({ name }) => name));
  return [...own, ...texts(settings.proxyMetadata).filter(({ name }) => !taken.has(name))];
}

/** What only the kubelet knows. */
function ofPod({ resources }: ProxyContainerSettings): readonly Variable[] {
  const field = (name: string, fieldPath: string): Variable => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  // Without a limit Kubernetes would tell the node's whole memory.
  const memory = "memory" in resources.limits ? { resourceFieldRef: { resource: "limits.memory" } } : undefined;
  return [
    field("POD_NAME", "metadata.name"),
    field("POD_NAMESPACE", "metadata.namespace"),
    field("INSTANCE_IP", "status.podIP"),
    field("POD_IPS", "status.podIPs"),
    field("NODE_NAME", "spec.nodeName"),
    field("HOST_IP", "status.hostIP"),
    field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "TULLE_POD_INFO", value: workloadPaths.pod },
    ...(memory === undefined ? [] : [{ name: "TULLE_PROXY_MEMORY_LIMIT_BYTES", valueFrom: memory }]),
  ];
}

function ofMesh(settings: ProxyContainerSettings): readonly Variable[] {
  const { form, proxyConfig, workload, mergedMetrics, probes, resources } = settings;
  const nodeOptions = [
    ...(form === "gateway" ? [] : [sidecarYoungGeneration]),
    ...("memory" in resources.limits ? [`--max-old-space-size-percentage=${heapPercentage}`] : []),
  ];
  return texts({
    NODE_OPTIONS: nodeOptions.length === 0 ? undefined : nodeOptions.join(" "),
    TULLE_PROXY_TYPE: settings.type,
    TULLE_PROXY: settings.proxy,
    TULLE_XDS_ADDRESS: settings.controlPlaneAddress,
    TULLE_CA_ROOT_FILE: `${workloadPaths.roots}/${rootsConfigMap.key}`,
    TULLE_TOKEN_FILE: `${workloadPaths.token.folder}/${workloadPaths.token.file}`,
    // The volume itself is root's, and open to all.
    TULLE_STATE_DIR: `${workloadPaths.state}/agent`,
    TRUST_DOMAIN: settings.trustDomain,
    TULLE_CLUSTER_DOMAIN: settings.clusterDomain,
    TULLE_PROXY_LOG_LEVEL: settings.logLevel,
    TULLE_CONCURRENCY: proxyConfig.concurrency === undefined ? undefined : String(proxyConfig.concurrency || 1),
    TULLE_DRAIN_MS: proxyConfig.terminationDrainMs?.toString(),
    // It is ended when the application's containers have: nobody is left who would take a new connection.
    TULLE_MINIMUM_DRAIN_MS: form === "native" ? "0" : undefined,
    TULLE_END_HOLD_MOST_MS: settings.type === "sidecar" ? settings.longestHoldMs?.toString() : undefined,
    TULLE_LISTENER_DRAIN_MS: proxyConfig.drainMs?.toString(),
    DNS_PROXY_ADDR: answersDns(settings) ? dnsAddress : undefined,
    ISTIO_META_CLUSTER_ID: settings.clusterId,
    ISTIO_META_NETWORK: settings.network,
    ISTIO_META_INTERCEPTION_MODE: settings.interceptionMode,
    ISTIO_META_WORKLOAD_NAME: workload?.name,
    ISTIO_META_OWNER: workload?.owner,
    ISTIO_META_MESH_ID: settings.trustDomain,
    ISTIO_META_APP_CONTAINERS: settings.applicationContainers.join(","),
    ISTIO_META_POD_PORTS: JSON.stringify(settings.applicationPorts),
    ISTIO_KUBE_APP_PROBERS: Object.keys(probes).length === 0 ? undefined : JSON.stringify(probes),
    ISTIO_PROMETHEUS_ANNOTATIONS: mergedMetrics === undefined ? undefined : JSON.stringify(mergedMetrics),
  });
}

function texts(values: Readonly<Record<string, string | undefined>>): readonly Variable[] {
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
}
