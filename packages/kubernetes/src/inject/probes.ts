/**
 * Probes of the application lead to the agent, which asks the application in their place: the kubelet has no
 * certificate, and what it sends to a captured pod would be refused under STRICT. Paths and the variable are Istio's.
 */
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import type { Container, Pod } from "./pod.ts";

/** Path at the agent → what the agent asks: as the container has it, ports as numbers. */
export type AppProbes = Readonly<Record<string, AppProbe>>;

export type AppProbe = { readonly timeoutSeconds?: number } & (
  | { readonly httpGet: PlainObject }
  | { readonly tcpSocket: PlainObject }
  | { readonly grpc: PlainObject }
);

export const appProbesVariable = "ISTIO_KUBE_APP_PROBERS";
export const agentPort = 15_020;

export interface RewrittenHandlers {
  readonly pod: Pod;
  readonly probes: AppProbes;
  readonly warnings: readonly string[];
}

const probeFields = [
  ["readinessProbe", "readyz"],
  ["livenessProbe", "livez"],
  ["startupProbe", "startupz"],
] as const;
const lifecycleFields = [
  ["preStop", "prestopz"],
  ["postStart", "poststartz"],
] as const;

/** Where the agent answers once clients have had the time to learn that the pod leaves. */
const drainPath = "/app-lifecycle/drain";
/** The hook takes up to half of it; the program has the rest for its last requests. */
const leastGraceSeconds = 10;
/** Kubernetes': between SIGTERM and SIGKILL. */
const defaultGraceSeconds = 30;

/** `proxyName`: the proxy's own container, which is left as it is. What was rewritten before stays. */
export function rewriteHandlers(pod: Pod, proxyName: string): RewrittenHandlers {
  const probes: Record<string, AppProbe> = {};
  const warnings: string[] = [];
  const rewritten = (container: Container): Container =>
    container.name === proxyName ? container : rewriteContainer(container, probes, warnings);
  const { spec } = pod;
  const isHeld = graceSecondsOf(spec) >= leastGraceSeconds;
  const containers = spec.containers.map((each) => {
    const container = rewritten(each);
    return isHeld && each.name !== proxyName ? holdEnd(container) : container;
  });
  const initContainers = spec.initContainers?.map(rewritten);
  const changed = { ...spec, containers, ...(initContainers === undefined ? {} : { initContainers }) };
  return { pod: { ...pod, spec: changed }, probes, warnings };
}

export function graceSecondsOf(spec: Pod["spec"]): number {
  const graceSeconds = spec["terminationGracePeriodSeconds"];
  return typeof graceSeconds === "number" ? graceSeconds : defaultGraceSeconds;
}

/** How long the hook may hold programs; undefined = as long as the agent holds them by itself, half the usual grace. */
export function longestHoldMs(spec: Pod["spec"]): number | undefined {
  const graceSeconds = graceSecondsOf(spec);
  return graceSeconds < defaultGraceSeconds ? graceSeconds * 500 : undefined;
}

function rewriteContainer(container: Container, probes: Record<string, AppProbe>, warnings: string[]): Container {
  const ports = portsByName(container);
  const rewrite = (field: string, path: string, handler: unknown): PlainObject | undefined => {
    if (!isPlainObject(handler)) return undefined;
    const found = appProbe(handler, ports);
    if (found === undefined) return undefined;
    if (typeof found === "string") {
      warnings.push(`the ${field} of container ${JSON.stringify(container.name)} ${found}: it is left as it is`);
      return undefined;
    }
    probes[path] = found;
    return toAgent(handler, path);
  };
  const result: PlainObject = { ...container };
  for (const [field, word] of probeFields) {
    const probe = rewrite(field, `/app-health/${container.name}/${word}`, container[field]);
    if (probe !== undefined) result[field] = probe;
  }
  const { lifecycle } = container;
  if (isPlainObject(lifecycle)) {
    const handlers: PlainObject = { ...lifecycle };
    for (const [field, word] of lifecycleFields) {
      const handler = rewrite(field, `/app-lifecycle/${container.name}/${word}`, lifecycle[field]);
      if (handler !== undefined) handlers[field] = handler;
    }
    result["lifecycle"] = handlers;
  }
  return result as unknown as Container;
}

/**
 * A pod that is deleted leaves its Services while its programs are told to end: requests that are sent meanwhile would
 * find nobody. So a program is told only after clients were; one with a hook of its own decides itself.
 */
function holdEnd(container: Container): Container {
  const { lifecycle } = container;
  const handlers: PlainObject = isPlainObject(lifecycle) ? lifecycle : {};
  if (handlers["preStop"] !== undefined && handlers["preStop"] !== null) return container;
  const preStop = { httpGet: { path: drainPath, port: agentPort } };
  return { ...container, lifecycle: { ...handlers, preStop } };
}

/** Undefined for what stays as it is, a sentence's end where the reason is worth a warning. */
function appProbe(handler: PlainObject, ports: ReadonlyMap<string, number>): AppProbe | string | undefined {
  const { httpGet, tcpSocket, grpc, timeoutSeconds } = handler;
  const timeout = typeof timeoutSeconds === "number" ? { timeoutSeconds } : {};
  if (isPlainObject(grpc)) return isPort(grpc["port"]) ? { grpc, ...timeout } : undefined;
  const action = isPlainObject(httpGet) ? httpGet : tcpSocket;
  if (!isPlainObject(action)) return undefined;
  // A host of its own: the kubelet asks there, and not this pod.
  if (typeof action["host"] === "string" && action["host"] !== "") return undefined;
  const port = portNumber(action["port"], ports);
  if (port === undefined) return `names a port ${JSON.stringify(action["port"])} that the container does not list`;
  if (port === agentPort) {
    const isOurs = /^\/app-(health|lifecycle)\//.test(String(action["path"]));
    return isOurs ? undefined : `asks at port ${agentPort}, which is the proxy's`;
  }
  const numbered = { ...action, port };
  return isPlainObject(httpGet) ? { httpGet: numbered, ...timeout } : { tcpSocket: numbered, ...timeout };
}

/** Headers stay: the agent passes them on. */
function toAgent(handler: PlainObject, path: string): PlainObject {
  const { httpGet } = handler;
  const { scheme, ...kept } = isPlainObject(httpGet) ? httpGet : {};
  const action: PlainObject = { ...kept, path, port: agentPort };
  if (scheme !== undefined) action["scheme"] = "HTTP";
  // In the place of the old one, so that a file's lines change where they are.
  return Object.fromEntries(
    Object.entries(handler).map(([name, value]) =>
      name === "httpGet" || name === "tcpSocket" || name === "grpc" ? ["httpGet", action] : [name, value],
    ),
  );
}

function portsByName(container: Container): ReadonlyMap<string, number> {
  const { ports } = container;
  const named = new Map<string, number>();
  for (const port of Array.isArray(ports) ? (ports as unknown[]) : []) {
    if (!isPlainObject(port)) continue;
    const { name, containerPort } = port;
    if (typeof name === "string" && isPort(containerPort)) named.set(name, containerPort);
  }
  return named;
}

function portNumber(value: unknown, ports: ReadonlyMap<string, number>): number | undefined {
  if (isPort(value)) return value;
  if (typeof value !== "string") return undefined;
  const number = ports.get(value) ?? (/^\d{1,5}$/.test(value) ? Number(value) : undefined);
  return isPort(number) ? number : undefined;
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536;
}
