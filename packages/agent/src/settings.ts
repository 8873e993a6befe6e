// What the platform tells an agent about its pod, by environment variables. The table below is the whole contract
// between `tulle up` (or an injected pod template) and `tulle agent`.
import { isIP, isIPv4 } from "node:net";
import path from "node:path";
import type { DnsAddress } from "@tulle/capture/dns";
import { isSpiffeId, type SpiffeId } from "@tulle/identity";
import { type LogLevel, isLogLevel, type MetricExportSettings, proxyMetricsEnvironment } from "@tulle/telemetry";
import { type ApplicationProbes, readProbes } from "./probes/read-probes.ts";

/** Node metadata by Istio's names: strings, and for LABELS, ANNOTATIONS and POD_PORTS what JSON holds. */
export type NodeMetadata = Readonly<Record<string, unknown>>;

export interface AgentSettings {
  readonly proxyType: "sidecar" | "router";
  readonly dataPlane: "tulle" | "envoy";
  readonly podName: string;
  readonly podNamespace: string;
  readonly podAddress: string;
  readonly serviceAccount: string;
  readonly metadata: NodeMetadata;
  /** `http://host:port`, or `https://host:port` for a workload with an identity. */
  readonly controlPlane: string;
  /** Undefined in a mesh without an authority: then nothing is encrypted, and the proxy is offered no secrets. */
  readonly identity: IdentitySettings | undefined;
  /**
   * Absolute; the agent's own files lie here: xds.sock, xds-state, bootstrap.json, sds.sock, workload-certificate.json.
   */
  readonly stateFolder: string;
  readonly envoyCommand: string;
  readonly concurrency: number;
  readonly logLevel: LogLevel;
  /** How long requests may still run once the agent was told to stop. */
  readonly drainMs: number;
  /** How long it takes connections after SIGTERM: clients learn only now that the workload leaves. */
  readonly minimumDrainMs: number;
  /** How long a hook of the pod's programs waits at least; they are told to end after it. */
  readonly endHoldMs: number;
  /** At most, while somebody still asks them. */
  readonly endHoldMostMs: number;
  /** Ports of Tulle's proxy that only programs of this user may connect to. */
  readonly ownUserPorts: ReadonlySet<number>;
  /** Addresses (`127.16.4.0/22`) at which Tulle's proxy talks to programs of this user alone. */
  readonly ownUserRange: string | undefined;
  /** Of the proxy; near it requests and connections are given up. 0 = no limit is known. */
  readonly memoryLimitBytes: number;
  /** Of the application, which the agent serves with the proxy's; undefined where it has none. */
  readonly applicationMetrics: ApplicationPage | undefined;
  /** Probes of the application that the agent asks for the kubelet. */
  readonly applicationProbes: ApplicationProbes;
  /** Where the agent answers DNS questions; none when it does not. */
  readonly dnsAddresses: readonly DnsAddress[];
  /** Absolute; resolv.conf of the machine. */
  readonly resolverFile: string;
  /** `cluster.local` */
  readonly clusterDomain: string;
  /** Domains of which no other name server knows anything. */
  readonly ownDomains: readonly string[];
  /** A machine that is no pod tells the control plane how it is. */
  readonly isMachine: boolean;
  /** How long connections of a listener that was removed or changed may go on (Istio: drainDuration). */
  readonly listenerDrainMs: number;
  /** Where the proxy sends its metrics (`OTEL_*`, beside the table below); undefined = nowhere. */
  readonly metricExport: MetricExportSettings | undefined;
  /** What of that was not understood, each a sentence. */
  readonly metricExportProblems: readonly string[];
}

/** Where the pod's application serves its metrics. */
export interface ApplicationPage {
  readonly address: string;
  readonly port: number;
  readonly path: string;
}

export interface IdentitySettings {
  /** Absolute; the mesh's roots in PEM as the platform knows them at the start. */
  readonly rootsFile: string;
  /** Absolute; a service-account token, rewritten by the platform before it expires. */
  readonly tokenFile: string | undefined;
  readonly spiffeId: SpiffeId;
}

export type ParsedSettings =
  | { readonly ok: true; readonly settings: AgentSettings }
  | { readonly ok: false; readonly problems: readonly string[] };

/** The agent's own page of metrics (Istio's port). */
export const metricsPort = 15_020;

type Environment = Readonly<Record<string, string | undefined>>;

interface Variable {
  readonly name: string;
  readonly meaning: string;
  /** Taken where the variable is missing or empty; without one it is required. */
  readonly fallback?: string;
}

/** Every variable that the agent reads. */
export const agentVariables = [
  { name: "POD_NAME", meaning: "the pod's name" },
  { name: "POD_NAMESPACE", meaning: "its namespace" },
  {
    name: "INSTANCE_IP",
    meaning: "its address, which the proxy listens on, dials from, and serves its admin pages at",
  },
  { name: "TULLE_XDS_ADDRESS", meaning: "host:port of the control plane's xDS server" },
  {
    name: "TULLE_CA_ROOT_FILE",
    meaning:
      "the mesh's roots in PEM at the start; with it the control plane is reached over TLS, and the workload gets a certificate",
    fallback: "",
  },
  { name: "TULLE_TOKEN_FILE", meaning: "the service-account token that proves who the workload is", fallback: "" },
  { name: "TRUST_DOMAIN", meaning: "the trust domain of the workload's identity", fallback: "cluster.local" },
  { name: "TULLE_STATE_DIR", meaning: "a folder for the socket, the saved state and the bootstrap; 0700" },
  { name: "SERVICE_ACCOUNT", meaning: "the pod's service account", fallback: "default" },
  { name: "TULLE_PROXY_TYPE", meaning: "sidecar, or router for a gateway", fallback: "sidecar" },
  { name: "TULLE_PROXY", meaning: "the data plane: tulle (in this process) or envoy (a child)", fallback: "tulle" },
  { name: "TULLE_ENVOY", meaning: "the program that envoy stands for", fallback: "envoy" },
  {
    name: "TULLE_NODE_METADATA",
    meaning: "JSON object of node metadata by Istio's names (LABELS, WORKLOAD_NAME, CLUSTER_ID, APP_ADDRESS, …)",
    fallback: "{}",
  },
  { name: "TULLE_CONCURRENCY", meaning: "threads for requests", fallback: "1" },
  { name: "TULLE_PROXY_LOG_LEVEL", meaning: "trace, debug, info, warning, error, critical or off", fallback: "info" },
  {
    name: "TULLE_PROXY_MEMORY_LIMIT_BYTES",
    meaning: "memory of the proxy; near it requests and connections are refused; 0 for no limit",
    fallback: "0",
  },
  {
    name: "TULLE_OWN_USER_PORTS",
    meaning: "ports of the proxy that only programs of this user may connect to, with commas between",
    fallback: "",
  },
  {
    name: "TULLE_OWN_USER_RANGE",
    meaning: "IPv4 addresses (a.b.c.d/bits) at which the proxy talks to programs of this user alone",
    fallback: "",
  },
  {
    name: "ISTIO_PROMETHEUS_ANNOTATIONS",
    meaning: "JSON object of scrape, port and path: where the application has metrics of its own",
    fallback: "{}",
  },
  {
    name: "ISTIO_KUBE_APP_PROBERS",
    meaning:
      "JSON object of paths (/app-health/CONTAINER/readyz) and probes as a container has them: asked at port 15020, the agent asks the application",
    fallback: "{}",
  },
  {
    name: "DNS_PROXY_ADDR",
    meaning:
      "host:port where DNS questions of the workload are answered, localhost for both families; nowhere when empty",
    fallback: "",
  },
  {
    name: "TULLE_RESOLVER_FILE",
    meaning: "whom to ask for names of others (resolv.conf)",
    fallback: "/etc/resolv.conf",
  },
  {
    name: "TULLE_CLUSTER_DOMAIN",
    meaning: "the domain under which Services have their names",
    fallback: "cluster.local",
  },
  {
    name: "TULLE_OWN_DOMAINS",
    meaning:
      "domains that no other name server knows, with commas between: names that the mesh lacks are told to be none",
    fallback: "",
  },
  {
    name: "TULLE_MACHINE",
    meaning:
      "yes on a machine that has joined by a token: it tells the control plane where it is, and whether it is well",
    fallback: "no",
  },
  { name: "TULLE_DRAIN_MS", meaning: "how long requests may go on after SIGTERM or SIGINT", fallback: "5000" },
  {
    // Istio: MINIMUM_DRAIN_DURATION.
    name: "TULLE_MINIMUM_DRAIN_MS",
    meaning: "how long connections are still taken after SIGTERM, at most as long as requests may go on",
    fallback: "5000",
  },
  {
    name: "TULLE_END_HOLD_MS",
    meaning: "how long programs of a pod that leaves are kept from ending, while clients learn of it",
    fallback: "5000",
  },
  {
    name: "TULLE_END_HOLD_MOST_MS",
    meaning: "how long they are kept at most while somebody still asks them",
    fallback: "15000",
  },
  {
    name: "TULLE_LISTENER_DRAIN_MS",
    meaning: "how long connections of a listener that was removed or changed may go on",
    fallback: "45000",
  },
] as const satisfies readonly Variable[];

type VariableName = (typeof agentVariables)[number]["name"];

/** All problems at once, each naming its variable. */
export function parseSettings(env: Environment): ParsedSettings {
  const problems: string[] = [];
  const values = new Map<VariableName, string>();
  for (const variable of agentVariables as readonly (Variable & { readonly name: VariableName })[]) {
    const value = env[variable.name] || variable.fallback;
    if (value === undefined) problems.push(`${variable.name} is not set: ${variable.meaning}`);
    values.set(variable.name, value ?? "");
  }
  const text = (name: VariableName): string => values.get(name)!;
  const oneOf = <T extends string>(name: VariableName, allowed: readonly T[]): T => {
    const value = allowed.find((candidate) => candidate === text(name));
    if (value === undefined) problems.push(`${name} is ${JSON.stringify(text(name))}, not ${allowed.join(" or ")}`);
    return value ?? allowed[0]!;
  };
  const whole = (name: VariableName, least: number, most: number): number => {
    const value = Number(text(name));
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    problems.push(`${name} is ${JSON.stringify(text(name))}, not a whole number from ${least} to ${most}`);
    return least;
  };
  const isSecure = text("TULLE_CA_ROOT_FILE") !== "";
  const logLevel = text("TULLE_PROXY_LOG_LEVEL");
  if (!isLogLevel(logLevel)) problems.push(`TULLE_PROXY_LOG_LEVEL is ${JSON.stringify(logLevel)}, no log level`);
  const object = (name: VariableName): JsonObject | undefined => parseObject(name, text(name), problems);
  const metadata: NodeMetadata = object("TULLE_NODE_METADATA") ?? {};
  const metrics = proxyMetricsEnvironment(env);
  const settings: AgentSettings = {
    proxyType: oneOf("TULLE_PROXY_TYPE", ["sidecar", "router"]),
    dataPlane: oneOf("TULLE_PROXY", ["tulle", "envoy"]),
    podName: text("POD_NAME"),
    podNamespace: text("POD_NAMESPACE"),
    podAddress: text("INSTANCE_IP"),
    serviceAccount: text("SERVICE_ACCOUNT"),
    metadata,
    applicationMetrics: parseApplication(object("ISTIO_PROMETHEUS_ANNOTATIONS"), metadata["APP_ADDRESS"], problems),
    applicationProbes: readProbes(object("ISTIO_KUBE_APP_PROBERS") ?? {}, problems),
    controlPlane: parseAddress(text("TULLE_XDS_ADDRESS"), isSecure, problems),
    identity: isSecure ? parseIdentity(text, problems) : undefined,
    stateFolder: path.resolve(text("TULLE_STATE_DIR")),
    envoyCommand: text("TULLE_ENVOY"),
    concurrency: whole("TULLE_CONCURRENCY", 1, 256),
    logLevel: isLogLevel(logLevel) ? logLevel : "info",
    drainMs: whole("TULLE_DRAIN_MS", 0, 3_600_000),
    minimumDrainMs: whole("TULLE_MINIMUM_DRAIN_MS", 0, 3_600_000),
    endHoldMs: whole("TULLE_END_HOLD_MS", 0, 3_600_000),
    endHoldMostMs: whole("TULLE_END_HOLD_MOST_MS", 0, 3_600_000),
    ownUserPorts: parsePorts(text("TULLE_OWN_USER_PORTS"), problems),
    ownUserRange: parseRange(text("TULLE_OWN_USER_RANGE"), problems),
    memoryLimitBytes: whole("TULLE_PROXY_MEMORY_LIMIT_BYTES", 0, Number.MAX_SAFE_INTEGER),
    dnsAddresses: parseDnsAddress(text("DNS_PROXY_ADDR"), problems),
    resolverFile: path.resolve(text("TULLE_RESOLVER_FILE")),
    clusterDomain: text("TULLE_CLUSTER_DOMAIN"),
    ownDomains: text("TULLE_OWN_DOMAINS")
      .split(",")
      .filter((domain) => domain !== ""),
    isMachine: oneOf("TULLE_MACHINE", ["no", "yes"]) === "yes",
    listenerDrainMs: whole("TULLE_LISTENER_DRAIN_MS", 0, 3_600_000),
    metricExport: metrics.settings,
    metricExportProblems: metrics.problems,
  };
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings };
}

function parseIdentity(text: (name: VariableName) => string, problems: string[]): IdentitySettings {
  const spiffeId: SpiffeId = {
    trustDomain: text("TRUST_DOMAIN"),
    namespace: text("POD_NAMESPACE"),
    serviceAccount: text("SERVICE_ACCOUNT"),
  };
  if (spiffeId.namespace !== "" && !isSpiffeId(spiffeId)) {
    problems.push(
      `TRUST_DOMAIN, POD_NAMESPACE and SERVICE_ACCOUNT make no identity: ${Object.values(spiffeId).join(", ")}`,
    );
  }
  const tokenFile = text("TULLE_TOKEN_FILE");
  return {
    rootsFile: path.resolve(text("TULLE_CA_ROOT_FILE")),
    tokenFile: tokenFile === "" ? undefined : path.resolve(tokenFile),
    spiffeId,
  };
}

type JsonObject = Readonly<Record<string, unknown>>;

function parseObject(name: VariableName, text: string, problems: string[]): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Told below, like any other text that is no object.
  }
  problems.push(`${name} is no JSON object`);
  return undefined;
}

/** Istio's defaults where the pod says the rest: port 80, /metrics. */
function parseApplication(
  said: JsonObject | undefined,
  address: unknown,
  problems: string[],
): ApplicationPage | undefined {
  if (said === undefined || Object.keys(said).length === 0) return undefined;
  const { scrape, port = "80", path: page = "/metrics" } = said;
  if (scrape === "false") return undefined;
  const number = Number(port);
  // It would ask itself without end.
  const isOwn = number === metricsPort;
  const isPort = /^\d{1,5}$/.test(String(port)) && number > 0 && number < 65_536;
  if (!isPort || isOwn || !String(page).startsWith("/")) {
    problems.push(
      `ISTIO_PROMETHEUS_ANNOTATIONS: ${JSON.stringify(port)} and ${JSON.stringify(page)} are no page of the application`,
    );
    return undefined;
  }
  return { address: typeof address === "string" ? address : "127.0.0.1", port: number, path: String(page) };
}

function parsePorts(text: string, problems: string[]): ReadonlySet<number> {
  const ports = text.split(",").filter((part) => part !== "");
  const bad = ports.find((part) => !/^\d{1,5}$/.test(part) || Number(part) > 65_535);
  if (bad !== undefined) problems.push(`TULLE_OWN_USER_PORTS: ${JSON.stringify(bad)} is no port`);
  return new Set(ports.map(Number));
}

function parseDnsAddress(text: string, problems: string[]): readonly DnsAddress[] {
  if (text === "") return [];
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  const port = Number(text.slice(colon + 1));
  const isPort = colon > 0 && /^\d{1,5}$/.test(text.slice(colon + 1)) && port > 0 && port < 65_536;
  if (!isPort || (host !== "localhost" && isIP(host) === 0)) {
    problems.push(`DNS_PROXY_ADDR is ${JSON.stringify(text)}, not host:port of an address or of localhost`);
    return [];
  }
  if (host !== "localhost") return [{ address: host, port }];
  return [
    { address: "127.0.0.1", port },
    { address: "::1", port, mayLack: true },
  ];
}

function parseRange(text: string, problems: string[]): string | undefined {
  if (text === "") return undefined;
  const [address = "", bits = ""] = text.split("/");
  if (!isIPv4(address) || !/^\d{1,2}$/.test(bits) || Number(bits) > 32) {
    problems.push(`TULLE_OWN_USER_RANGE is ${JSON.stringify(text)}, not a.b.c.d/bits`);
  }
  return text;
}

function parseAddress(address: string, isSecure: boolean, problems: string[]): string {
  if (address === "") return "";
  const url = `${isSecure ? "https" : "http"}://${address}`;
  if (URL.canParse(url) && new URL(url).port !== "") return url;
  problems.push(`TULLE_XDS_ADDRESS is ${JSON.stringify(address)}, not host:port`);
  return "";
}
