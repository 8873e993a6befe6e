// How the proxy beside a pod is started: `tulle agent` with its settings in the environment.
import { makeOwnFolder } from "@tulle/identity/own";
import type { ProcessSpec, RestartPolicy } from "../process/supervised-process.ts";
import { inheritedEnvironment } from "./environment.ts";
import type { PodNetwork } from "../network/pod-network.ts";
import type { ContainerPort, PodPlan } from "./pod-plan.ts";

/**
 * On loopback every user of the machine can reach a pod's ports. These are for its own programs and the person who runs
 * it: the way out of the pod, on which a caller speaks as the workload, and the proxy's admin pages.
 */
const ownUserPorts = [15_000, 15_007];

/**
 * V8 would give a sidecar's short-lived objects up to 32 MB, and once it has grown to that at the start it keeps it:
 * with this much, an idle sidecar takes 30 MB less, and a request in a busy one about 5 % more CPU. A gateway, which is
 * there once, keeps V8's own.
 */
export const sidecarNodeOptions = "--max-semi-space-size=4";

/** The pod that a proxy is beside. */
export interface ProxiedPod {
  readonly name: string;
  readonly plan: PodPlan;
  readonly network: PodNetwork;
  readonly ports: readonly ContainerPort[];
}

export interface SidecarSettings {
  /** Program and first arguments that stand for `tulle`. */
  readonly tulleCommand: readonly string[];
  /** The supervisor's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nodePath: string;
  readonly tulleCompileCache: string;
  /** `host:port` of the control plane's xDS server, over TLS. */
  readonly xdsAddress: string;
  /** The mesh's roots in PEM, by which a proxy knows its control plane. */
  readonly rootsFile: string;
  readonly clusterId: string;
  /** All addresses of the instance, as `127.16.4.0/22`. */
  readonly addressRange: string;
  readonly podStateFolder: (podName: string) => string;
  /** Published ports of a gateway's pod. */
  readonly publishedPorts: readonly {
    readonly address: string;
    readonly hostPort: number;
    readonly targetPort: number;
    readonly descriptor: number;
  }[];
}

/**
 * The agent's settings: `TULLE_NODE_METADATA` is the node's whole metadata (Istio's names, see
 * `packages/control-plane/src/scope/proxy.ts`) as JSON, the rest says where things are.
 */
export function sidecarSpec(
  pod: ProxiedPod,
  settings: SidecarSettings,
  logFile: string,
  restart: RestartPolicy,
): ProcessSpec {
  const { network } = pod;
  const podFolder = settings.podStateFolder(pod.name);
  makeOwnFolder(podFolder);
  const stateFolder = network.proxyFolder(podFolder);
  return {
    name: `${pod.name}/proxy`,
    cwd: podFolder,
    launch: () => ({
      argv: [...settings.tulleCommand, "agent"],
      ...network.enter({ user: "proxy", cwd: stateFolder, env: environmentOf(pod, stateFolder, settings) }),
    }),
    logFile,
    listenDescriptors:
      network.leadIn === undefined
        ? settings.publishedPorts.map(({ targetPort, descriptor }) => [targetPort, descriptor])
        : [],
    restart,
    // Its endpoints are withdrawn by then: it need not wait for clients that do not know.
    stopSignal: "SIGINT",
  };
}

function environmentOf(
  pod: ProxiedPod,
  stateFolder: string,
  settings: SidecarSettings,
): Readonly<Record<string, string>> {
  const { plan, network } = pod;
  return {
    ...inheritedEnvironment(settings.env, settings.nodePath),
    ...plan.proxyMetadata,
    NODE_COMPILE_CACHE: settings.tulleCompileCache,
    // The person's own come last, and win.
    ...(plan.injection === "gateway"
      ? {}
      : { NODE_OPTIONS: [sidecarNodeOptions, settings.env["NODE_OPTIONS"] ?? ""].join(" ").trim() }),
    TULLE_PROXY_TYPE: plan.injection === "gateway" ? "router" : "sidecar",
    POD_NAME: pod.name,
    POD_NAMESPACE: plan.namespace,
    INSTANCE_IP: network.addresses.pod,
    SERVICE_ACCOUNT: plan.serviceAccount,
    TULLE_NODE_METADATA: JSON.stringify(nodeMetadata(pod, settings)),
    TULLE_XDS_ADDRESS: settings.xdsAddress,
    TULLE_CA_ROOT_FILE: settings.rootsFile,
    TULLE_TOKEN_FILE: tokenFile(pod, settings),
    TULLE_STATE_DIR: stateFolder,
    TULLE_PROXY: plan.proxy,
    TULLE_DRAIN_MS: String(terminationDrainMs(plan)),
    ...accessVariables(pod, settings),
    TULLE_PROXY_MEMORY_LIMIT_BYTES: String(plan.proxyMemoryBytes ?? 0),
    ...(plan.mergedMetrics === undefined ? {} : { ISTIO_PROMETHEUS_ANNOTATIONS: JSON.stringify(plan.mergedMetrics) }),
    ...(plan.proxyConfig.drainMs === undefined ? {} : { TULLE_LISTENER_DRAIN_MS: String(plan.proxyConfig.drainMs) }),
    ...(settings.env["TULLE_ENVOY"] === undefined ? {} : { TULLE_ENVOY: settings.env["TULLE_ENVOY"] }),
  };
}

/** Who may reach the proxy, and what it answers of names. */
function accessVariables({ network, plan }: ProxiedPod, settings: SidecarSettings): Readonly<Record<string, string>> {
  if (network.interceptionMode === "NONE")
    return { TULLE_OWN_USER_PORTS: ownUserPorts.join(","), TULLE_OWN_USER_RANGE: settings.addressRange };
  return plan.injection === "gateway"
    ? {}
    : {
        DNS_PROXY_ADDR: "localhost:15053",
        TULLE_OWN_DOMAINS: "cluster.local",
      };
}

/** How long requests may go on after a proxy was told to end. Istio's default. */
export function terminationDrainMs({ proxyConfig }: Pick<PodPlan, "proxyConfig">): number {
  return proxyConfig.terminationDrainMs ?? 5000;
}

/** The pod's workload token. */
export function tokenFile(
  { name, network }: Pick<ProxiedPod, "name" | "network">,
  settings: Pick<SidecarSettings, "podStateFolder">,
): string {
  return network.tokenFile(settings.podStateFolder(name));
}

/** Node metadata by Istio's names; `APP_ADDRESS` is ours. */
function nodeMetadata(pod: ProxiedPod, settings: SidecarSettings): Readonly<Record<string, unknown>> {
  const { plan, network } = pod;
  return {
    NAME: pod.name,
    NAMESPACE: plan.namespace,
    LABELS: plan.labels,
    ANNOTATIONS: plan.annotations,
    OWNER: `kubernetes://apis/apps/v1/namespaces/${plan.namespace}/deployments/${plan.deployment}`,
    WORKLOAD_NAME: plan.deployment,
    SERVICE_ACCOUNT: plan.serviceAccount,
    CLUSTER_ID: settings.clusterId,
    MESH_ID: "cluster.local",
    INSTANCE_IPS: network.ips.join(","),
    POD_PORTS: pod.ports.map(({ name, port }) => ({ ...(name === undefined ? {} : { name }), containerPort: port })),
    APP_CONTAINERS: plan.containers.map((container) => container.name).join(","),
    INTERCEPTION_MODE: network.interceptionMode,
    ...(plan.injection === "gateway" ? {} : { APP_ADDRESS: network.addresses.app }),
  };
}
