// Puts a pod together: the proxy's container and what belongs to it, at the places where they start in the right order.
import { type MeshConfig, mergesMetrics, metricsAnnotations } from "@tulle/config";
import { injectedContainers, proxyUser } from "../names.ts";
import { captureContainer } from "./capture-container.ts";
import { type InjectionStatus, proxyNames, statusAnnotation } from "./injection-status.ts";
import { mergePods } from "./merge-pods.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import {
  annotationsOf,
  type Container,
  labelsOf,
  type Pod,
  runningContainers,
  type Texts,
  type Volume,
  withMetadata,
} from "./pod.ts";
import type { PodSettings } from "./pod-settings.ts";
import { agentPort, graceSecondsOf, longestHoldMs, rewriteHandlers } from "./probes.ts";
import { answersDns, proxyContainer, type ProxyContainerSettings, proxyVolumes } from "./sidecar-container.ts";
import type { InjectionValues } from "./values.ts";
import { ownerUri, type Workload } from "./workload.ts";

/** Of a gateway: Istio's own time to drain, what the agent takes at most, and what is left for its last words. */
const leastDrainMs = 5000;
const mostDrainMs = 3_600_000;
const endingMs = 2000;

export interface PodParts {
  readonly pod: Pod;
  readonly namespace: string;
  readonly mesh: Pick<MeshConfig, "enablePrometheusMerge" | "defaultConfig">;
  readonly values: InjectionValues;
  readonly settings: PodSettings;
  readonly workload: Workload | undefined;
}

export interface BuiltPod {
  readonly pod: Pod;
  readonly proxyName: string | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

export function injectSidecar(parts: PodParts): BuiltPod {
  const { values, settings } = parts;
  const { own, rest } = takeProxy(parts.pod);
  const name = own?.name ?? injectedContainers.proxy;
  const { pod, probes, warnings } = settings.rewritesProbes
    ? rewriteHandlers(rest, name)
    : { pod: rest, probes: {}, warnings: [] };
  const { spec } = pod;
  const form = settings.nativeSidecar ? "native" : "plain";
  const isCaptured = settings.interceptionMode !== "NONE";
  const isAwaited = form === "native" && isCaptured;
  const sidecar = { ...common(parts, rest, name), type: "sidecar", form, probes, isAwaited } as const;
  const proxy = overlaid(proxyContainer(sidecar), own);
  const capture = isCaptured ? [captureOf(parts, { dns: answersDns(sidecar), waits: isAwaited })] : [];
  const init = spec.initContainers ?? [];
  // A kubelet looks once a second whether it may start the next container. Beside a native sidecar the capture is made
  // while the proxy starts, and waits for it: one look less than by a startup probe. Without a sidecar that runs by
  // then, other init containers have a network only before the capture.
  const initContainers =
    form === "native" ? [proxy, ...capture, ...init] : values.cni ? [...capture, ...init] : [...init, ...capture];
  const containers =
    form === "native"
      ? spec.containers
      : settings.holdsApplication
        ? [proxy, ...spec.containers]
        : [...spec.containers, proxy];
  const withProxy = { ...spec, containers, ...(initContainers.length === 0 ? {} : { initContainers }) };
  return finish(
    parts,
    { pod: { ...pod, spec: withProxy }, rest, proxyName: name, warnings },
    {
      initContainers: [...(form === "native" ? [name] : []), ...capture.map((each) => each.name)],
      containers: form === "plain" ? [name] : [],
      takesMutualTls: true,
    },
  );
}

/** A gateway's pod is the proxy alone: nothing is captured, and nobody's probes are asked. */
export function injectGateway(parts: PodParts): BuiltPod {
  const { own, rest } = takeProxy(parts.pod);
  const name = own?.name ?? injectedContainers.proxy;
  const { spec } = parts.pod;
  const shared = common(parts, rest, name);
  const { terminationDrainMs = drainMsWithin(spec) } = shared.proxyConfig;
  const proxyConfig = { ...shared.proxyConfig, terminationDrainMs };
  const proxy = overlaid(
    proxyContainer({ ...shared, proxyConfig, type: "router", form: "gateway", probes: {}, isAwaited: false }),
    own,
  );
  const isThere = spec.containers.some((each) => each.name === name);
  const containers = isThere
    ? spec.containers.map((each) => (each.name === name ? proxy : each))
    : [...spec.containers, proxy];
  const pod = { ...parts.pod, spec: { ...spec, containers } };
  return finish(
    parts,
    { pod, rest, proxyName: name, warnings: [] },
    {
      initContainers: [],
      containers: [name],
      takesMutualTls: false,
    },
  );
}

/**
 * A gateway ends as soon as nobody waits for an answer; what takes long may take what the pod's grace leaves.
 * Afterwards the kubelet ends it.
 */
function drainMsWithin(spec: Pod["spec"]): number {
  return Math.min(Math.max(graceSecondsOf(spec) * 1000 - endingMs, leastDrainMs), mostDrainMs);
}

/**
 * The pod's own container that is to be the proxy, by its name, with what it says over what is injected; and the pod
 * without it.
 */
function takeProxy(pod: Pod): { readonly own: Container | undefined; readonly rest: Pod } {
  const isProxy = ({ name }: Container): boolean => proxyNames.includes(name);
  const { containers, initContainers } = pod.spec;
  const own = [...containers, ...(initContainers ?? [])].find(isProxy);
  if (own === undefined) return { own, rest: pod };
  const others = (list: readonly Container[]): readonly Container[] => list.filter(({ name }) => name !== own.name);
  const rest = {
    ...pod.spec,
    containers: others(containers),
    ...(Array.isArray(initContainers) ? { initContainers: others(initContainers) } : {}),
  };
  return { own, rest: { ...pod, spec: rest } };
}

/**
 * `image: auto` stands for the image that is injected; Kubernetes takes no container without one. That it is to be
 * pulled always is then what the API server has made of a name without a tag.
 */
function overlaid(proxy: Container, own: Container | undefined): Container {
  if (own === undefined) return proxy;
  const { image, imagePullPolicy: _ofAuto, ...fields } = own;
  return mergePods(proxy, image === undefined || image === "auto" ? fields : own);
}

function common(
  { settings, values, workload, namespace, mesh, pod }: PodParts,
  rest: Pod,
  name: string,
): Omit<ProxyContainerSettings, "type" | "form" | "probes" | "isAwaited"> {
  const annotations = annotationsOf(pod);
  const applications = runningContainers(rest);
  const merged = mergesMetrics(annotations, mesh) ? metricsAnnotations(annotations) : undefined;
  return {
    name,
    holdsApplication: settings.holdsApplication,
    proxy: settings.proxy,
    image: settings.image,
    imagePullPolicy: values.imagePullPolicy,
    logLevel: settings.logLevel,
    resources: settings.resources,
    interceptionMode: settings.interceptionMode,
    controlPlaneAddress: values.controlPlaneAddress,
    trustDomain: values.trustDomain,
    clusterDomain: values.clusterDomain,
    clusterId: values.clusterId,
    network: labelsOf(pod)[networkLabel] ?? values.network,
    workload: workload === undefined ? undefined : { name: workload.name, owner: ownerUri(workload, namespace) },
    applicationContainers: applications.map((each) => each.name),
    applicationPorts: applications.flatMap((each) => portsOf(each)),
    // A pod that was injected by hand and is injected again has the agent's own page there.
    mergedMetrics: merged?.port === String(agentPort) ? undefined : merged,
    proxyConfig: settings.proxyConfig,
    proxyMetadata: { ...mesh.defaultConfig?.proxyMetadata, ...settings.proxyConfig.proxyMetadata },
    longestHoldMs: longestHoldMs(rest.spec),
    readiness: settings.readiness,
    userVolumeMounts: settings.userVolumeMounts,
  };
}

function captureOf({ settings, values }: PodParts, how: { readonly dns: boolean; readonly waits: boolean }): Container {
  return captureContainer({
    cni: values.cni,
    image: settings.captureImage,
    imagePullPolicy: values.imagePullPolicy,
    resources: settings.resources,
    args: settings.captureArgs,
    ...how,
  });
}

function portsOf({ ports }: Container): readonly PlainObject[] {
  return Array.isArray(ports) ? ports.filter(isPlainObject) : [];
}

/** With its containers; `rest` is the pod without what was injected. */
interface MadePod {
  readonly pod: Pod;
  readonly rest: Pod;
  readonly proxyName: string;
  readonly warnings: readonly string[];
}

/** Volumes, pull secrets, labels, annotations, and what is worth a warning. */
function finish(
  parts: PodParts,
  { pod, rest, proxyName, warnings }: MadePod,
  added: {
    readonly initContainers: readonly string[];
    readonly containers: readonly string[];
    readonly takesMutualTls: boolean;
  },
): BuiltPod {
  const { values, settings } = parts;
  const volumes = [...proxyVolumes(), ...settings.userVolumes];
  const isAlone = added.takesMutualTls && rest.spec.containers.length === 0;
  const problems = [
    ...(isAlone
      ? ["the pod has no container beside its proxy: a gateway takes inject.istio.io/templates: gateway"]
      : []),
    ...nameProblems(rest, added.initContainers, proxyName),
    ...volumeProblems(pod, volumes),
  ];
  const pullSecrets = missingSecrets(pod, values.imagePullSecrets);
  const spec = {
    ...pod.spec,
    volumes: [...(pod.spec.volumes ?? []), ...volumes],
    ...(pullSecrets.length === 0
      ? {}
      : { imagePullSecrets: [...listOf(pod.spec["imagePullSecrets"]), ...pullSecrets.map((name) => ({ name }))] }),
  };
  const orNull = (names: readonly string[]): readonly string[] | null => (names.length === 0 ? null : names);
  const status: InjectionStatus = {
    initContainers: orNull(added.initContainers),
    containers: orNull(added.containers),
    volumes: volumes.map(({ name }) => name),
    imagePullSecrets: orNull(pullSecrets),
    revision: values.revision,
  };
  const labels = addedLabels(parts, added.takesMutualTls);
  const annotations = { ...addedAnnotations(parts, rest), [statusAnnotation]: JSON.stringify(status) };
  return {
    pod: withMetadata({ ...pod, spec }, { labels, annotations }),
    proxyName,
    problems,
    warnings: [...warnings, ...warningsOf(rest)],
  };
}

function nameProblems(rest: Pod, injected: readonly string[], proxyName: string): readonly string[] {
  const names = new Set([...rest.spec.containers, ...(rest.spec.initContainers ?? [])].map(({ name }) => name));
  return injected
    .filter((name) => name !== proxyName && names.has(name))
    .map((name) => `the pod has a container of the name ${JSON.stringify(name)}, which is the injected one's`);
}

function volumeProblems(pod: Pod, added: readonly Volume[]): readonly string[] {
  const names = new Set((pod.spec.volumes ?? []).map(({ name }) => name));
  return added.flatMap(({ name }) => {
    if (names.has(name)) return [`a volume ${JSON.stringify(name)} is to be added, and there is one of that name`];
    names.add(name);
    return [];
  });
}

function missingSecrets(pod: Pod, names: readonly string[]): readonly string[] {
  const there = listOf(pod.spec["imagePullSecrets"]).map((each) => (isPlainObject(each) ? each["name"] : undefined));
  return names.filter((name) => !there.includes(name));
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

const networkLabel = "topology.istio.io/network";
const tlsModeLabel = "security.istio.io/tlsMode";
const canonicalName = "service.istio.io/canonical-name";
const canonicalRevision = "service.istio.io/canonical-revision";

/** What a pod's own label says stays. */
function addedLabels({ pod, values, workload }: PodParts, takesMutualTls: boolean): Texts {
  const labels = labelsOf(pod);
  const name = labels["app.kubernetes.io/name"] ?? labels["app"] ?? labelValue(workload?.name);
  const added: Record<string, string | undefined> = {
    [tlsModeLabel]: takesMutualTls ? "istio" : undefined,
    [canonicalName]: name,
    [canonicalRevision]: labels["app.kubernetes.io/version"] ?? labels["version"] ?? "latest",
    [networkLabel]: values.network,
  };
  return Object.fromEntries(
    Object.entries(added).filter(
      (each): each is [string, string] => each[1] !== undefined && labels[each[0]] === undefined,
    ),
  );
}

/** Names of workloads may be longer than a label's value. */
function labelValue(name: string | undefined): string | undefined {
  return name?.slice(0, 63).replace(/[^a-zA-Z0-9]+$/, "");
}

function addedAnnotations({ pod, values, mesh, settings }: PodParts, rest: Pod): Texts {
  const annotations = annotationsOf(pod);
  const added: Record<string, string> = { "istio.io/rev": values.revision };
  const first = rest.spec.containers[0]?.name;
  for (const name of ["kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"]) {
    if (first !== undefined && annotations[name] === undefined) added[name] = first;
  }
  if (values.cni) Object.assign(added, settings.captureAnnotations);
  const says = (name: string): string | undefined => annotations[`prometheus.io/${name}`];
  if (mergesMetrics(annotations, mesh) && says("scrape") !== "false" && says("port") !== String(agentPort)) {
    added["prometheus.io/scrape"] = "true";
    added["prometheus.io/port"] = String(agentPort);
    added["prometheus.io/path"] = "/stats/prometheus";
    if (says("scheme") !== undefined) added["prometheus.io/scheme"] = "http";
  }
  return added;
}

/** Listened on by the proxy and its agent. */
const proxyPorts: ReadonlySet<unknown> = new Set([15_000, 15_001, 15_004, 15_006, 15_020, 15_021, 15_053, 15_090]);

function warningsOf(rest: Pod): readonly string[] {
  const ofPod = rest.spec["securityContext"];
  return runningContainers(rest).flatMap((container) => {
    const found = portsOf(container).find(({ containerPort }) => proxyPorts.has(containerPort));
    const name = JSON.stringify(container.name);
    const warnings: string[] = [];
    if (found !== undefined)
      warnings.push(
        `container ${name} lists port ${String(found["containerPort"])}, which the proxy uses: one of the two cannot listen there`,
      );
    const user = userOf(container["securityContext"]) ?? userOf(ofPod);
    if (user === proxyUser)
      warnings.push(
        `container ${name} runs as user ${proxyUser}, the proxy's: its connections do not go through the proxy`,
      );
    return warnings;
  });
}

function userOf(context: unknown): unknown {
  return isPlainObject(context) ? context["runAsUser"] : undefined;
}
