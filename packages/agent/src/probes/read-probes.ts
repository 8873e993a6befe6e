// The probes of a pod's containers, by the paths at which the kubelet asks the agent for them (Istio:
// `/app-health/CONTAINER/readyz`, and the variable ISTIO_KUBE_APP_PROBERS).
import type { ApplicationProbe } from "./application-probe.ts";

export type ApplicationProbes = ReadonlyMap<string, ApplicationProbe>;

const probePath = /^\/app-(?:health\/[^/]+\/(?:livez|readyz|startupz)|lifecycle\/[^/]+\/(?:prestopz|poststartz))$/;
const defaultTimeoutSeconds = 1;

type JsonObject = Readonly<Record<string, unknown>>;

export function readProbes(said: JsonObject, problems: string[]): ApplicationProbes {
  const probes = new Map<string, ApplicationProbe>();
  for (const [path, value] of Object.entries(said)) {
    const probe = probePath.test(path) ? readProbe(value) : undefined;
    if (probe === undefined) problems.push(`ISTIO_KUBE_APP_PROBERS: ${path} is no probe that an agent can ask`);
    else probes.set(path, probe);
  }
  return probes;
}

function readProbe(value: unknown): ApplicationProbe | undefined {
  if (!isObject(value)) return undefined;
  const { httpGet, tcpSocket, grpc, timeoutSeconds } = value;
  const seconds = typeof timeoutSeconds === "number" && timeoutSeconds > 0 ? timeoutSeconds : defaultTimeoutSeconds;
  const action = [httpGet, tcpSocket, grpc].find(isObject);
  const port = action?.["port"];
  if (!isPort(port)) return undefined;
  const common = { timeoutMs: Math.min(seconds, 3600) * 1000, port };
  if (isObject(grpc)) return { ...common, kind: "grpc", service: textOf(grpc["service"]) };
  if (isObject(tcpSocket)) return { ...common, kind: "tcp" };
  const { path, scheme, httpHeaders } = action!;
  const headers = Array.isArray(httpHeaders) ? httpHeaders.filter(isObject) : [];
  return {
    ...common,
    kind: "http",
    isTls: textOf(scheme).toUpperCase() === "HTTPS",
    path: `/${textOf(path).replace(/^\/+/, "")}`,
    headers: headers.map((header) => [textOf(header["name"]), textOf(header["value"])] as const),
  };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
