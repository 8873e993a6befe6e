/**
 * The control plane's HTTP API (port 15014), one declaration an endpoint. The server's table of routes and every
 * caller's paths and types come from here, so that they cannot drift apart. A web page may import it: it needs nothing
 * of Node's.
 */
import type {
  ApplyRequest,
  ApplyResponse,
  AuthorityStatus,
  ChangesResponse,
  DeleteResponse,
  FindingsResponse,
  IssuedToken,
  MachinesResponse,
  ProxyConfiguration,
  MetricTarget,
  ProxyConnection,
  ProxySync,
  RegisteredService,
  ResourceList,
  RolloutView,
  ServiceEndpoints,
  ShownResource,
  TokenRequest,
  WatchEvent,
} from "./answers.ts";
import type { MeshResource } from "../kinds/resource.ts";
import { emptySegment, type Endpoint, events, json, text } from "./endpoint.ts";

export type * from "./answers.ts";
export { rolloutActions, statusTypes } from "./answers.ts";
export * from "./endpoint.ts";

export const apiPort = 15014;
/** Of the Unix socket in the state directory; `@tulle/identity/own` has its path. */
export const apiSocketName = "control-plane.sock";

/** Largest body of a PUT; Kubernetes' own limit for an object is 1.5 MiB (etcd). */
export const maxApplyBodyBytes = 3 * 1024 * 1024;

/** A bookmark at least this often, so that a client can tell a silent connection from a dead one. */
export const bookmarkIntervalMs = 15_000;

type Endpoints = Readonly<Record<string, Endpoint>>;

export const resourceEndpoints = {
  listResources: {
    method: "GET",
    path: "/api/v1/resources/{kind}",
    query: ["namespace"],
    answer: json<ResourceList>(),
    summary: "list a kind",
  },
  readResource: {
    method: "GET",
    path: "/api/v1/resources/{kind}/{namespace}/{name}",
    answer: json<ShownResource>(),
    summary: "get one object",
  },
  applyResource: {
    method: "PUT",
    path: "/api/v1/resources/{kind}/{namespace}/{name}",
    takes: json<ApplyRequest>(),
    answer: json<ApplyResponse>(),
    summary: "create or replace one object",
  },
  deleteResource: {
    method: "DELETE",
    path: "/api/v1/resources/{kind}/{namespace}/{name}",
    // As in Kubernetes: with 0 a pod that runs is not asked to leave in good order, its object goes now.
    query: ["gracePeriodSeconds"],
    answer: json<DeleteResponse>(),
    summary: "delete one object",
  },
  watch: {
    method: "GET",
    path: "/api/v1/watch",
    query: ["kinds", "resourceVersion"],
    answer: events<WatchEvent>("application/x-ndjson"),
    summary: "follow changes (?kinds=A,B&resourceVersion=N)",
  },
  findings: {
    method: "GET",
    path: "/api/v1/findings",
    answer: json<FindingsResponse>(),
    summary: "what is wrong with the configuration",
  },
} as const satisfies Endpoints;

export const changeEndpoints = {
  changes: {
    method: "GET",
    path: "/api/v1/changes",
    query: ["since"],
    answer: json<ChangesResponse>(),
    summary: "what was changed, by whom, and which proxies have it (?since=TIME)",
  },
} as const satisfies Endpoints;

export const authorityEndpoints = {
  authority: {
    method: "GET",
    path: "/api/v1/ca",
    answer: json<AuthorityStatus>(),
    summary: "the certificate authority and the trusted roots",
  },
  rotateRoot: {
    method: "POST",
    path: "/api/v1/ca/rotate-root",
    query: ["introduceSeconds", "overlapSeconds", "force"],
    answer: json<AuthorityStatus>(),
    summary: "begin the change to a new root (?introduceSeconds=&overlapSeconds=&force=true)",
  },
} as const satisfies Endpoints;

export const machineEndpoints = {
  machines: {
    method: "GET",
    path: "/api/v1/machines",
    answer: json<MachinesResponse>(),
    summary: "machines that have joined, tokens, and what came of them",
  },
  issueToken: {
    method: "POST",
    path: "/api/v1/machines/tokens",
    takes: json<TokenRequest>(),
    answer: json<IssuedToken>(),
    summary: "make a token by which one machine joins",
  },
  revokeToken: {
    method: "DELETE",
    path: "/api/v1/machines/tokens/{id}",
    answer: json<MachinesResponse>(),
    summary: "make a token worthless",
  },
  removeMachine: {
    method: "DELETE",
    path: "/api/v1/machines/members/{namespace}/{name}",
    answer: json<MachinesResponse>(),
    summary: "remove a machine, whose certificate is worth nothing then",
  },
} as const satisfies Endpoints;

export const rolloutEndpoints = {
  rollouts: {
    method: "GET",
    path: "/api/v1/rollouts",
    answer: json<readonly RolloutView[]>(),
    summary: "where all roll-outs stand",
  },
  rollout: {
    method: "GET",
    path: "/api/v1/rollouts/{namespace}/{name}",
    answer: json<RolloutView>(),
    summary: "where one stands, and its history",
  },
  steerRollout: {
    method: "POST",
    path: "/api/v1/rollouts/{namespace}/{name}/{action}",
    query: ["full"],
    answer: json<RolloutView>(),
    summary: "start, pause, resume, promote (?full=true) or abort one",
  },
} as const satisfies Endpoints;

/** How a control plane that does not lead begins its refusal to steer a roll-out: another one is to be asked. */
export const asksLeader = "ask the control plane that leads";

/** In the order in which `/debug` lists them. */
export const debugEndpoints = {
  syncStatus: {
    method: "GET",
    path: "/debug/syncz",
    answer: json<readonly ProxySync[]>(),
    summary: "whether each proxy holds what was sent",
  },
  pending: {
    method: "GET",
    path: "/debug/pending",
    answer: json<{ readonly pending: boolean }>(),
    summary: "whether changes wait to be sent",
  },
  configuration: {
    method: "GET",
    path: "/debug/configz",
    answer: json<readonly MeshResource[]>(),
    summary: "every resource",
  },
  registry: {
    method: "GET",
    path: "/debug/registryz",
    answer: json<readonly RegisteredService[]>(),
    summary: "every Service",
  },
  endpoints: {
    method: "GET",
    path: "/debug/endpointz",
    answer: json<readonly ServiceEndpoints[]>(),
    summary: "the endpoints of every Service port",
  },
  connections: {
    method: "GET",
    path: "/debug/connections",
    answer: json<readonly ProxyConnection[]>(),
    summary: "open xDS streams",
  },
  proxyConfiguration: {
    method: "GET",
    path: "/debug/config_dump",
    query: ["proxyID"],
    answer: json<ProxyConfiguration>(),
    summary: "what one proxy should have (?proxyID=<pod>.<namespace>)",
  },
  ready: { method: "GET", path: "/ready", isPublic: true, answer: text(), summary: "200 once configuration is served" },
  version: {
    method: "GET",
    path: "/version",
    isPublic: true,
    answer: json<{ readonly version: string; readonly instance: string }>(),
    summary: "version and instance",
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    isPublic: true,
    answer: text("text/plain; version=0.0.4; charset=utf-8"),
    summary: "metrics for Prometheus, by Accept as OpenMetrics",
  },
  metricTargets: {
    method: "GET",
    path: "/debug/metric_targets",
    answer: json<readonly MetricTarget[]>(),
    summary: "what Prometheus should scrape, as its HTTP service discovery reads it",
  },
  pages: {
    method: "GET",
    path: "/debug",
    answer: json<readonly { readonly path: string; readonly summary: string }[]>(),
    summary: "this list",
  },
} as const satisfies Endpoints;

export const endpoints = {
  ...resourceEndpoints,
  ...changeEndpoints,
  ...authorityEndpoints,
  ...machineEndpoints,
  ...rolloutEndpoints,
  ...debugEndpoints,
};

/** The path up to its first parameter. */
export function fixedPart(path: string): string {
  return path.split("{", 1)[0]!;
}

/** What a request path of resources names; undefined when it is no such path. The kind is not checked. */
export function parseResourcePath(
  pathname: string,
): { readonly kind: string; readonly object?: { readonly namespace: string; readonly name: string } } | undefined {
  const before = fixedPart(endpoints.listResources.path);
  if (!pathname.startsWith(before)) return undefined;
  let segments: string[];
  try {
    segments = pathname.slice(before.length).split("/").map(decodeURIComponent);
  } catch {
    return undefined; // a malformed percent escape
  }
  const [kind = "", namespace, name] = segments;
  if (kind === "" || segments.includes("")) return undefined;
  if (namespace === undefined) return { kind };
  if (name === undefined || segments.length > 3) return undefined;
  return { kind, object: { namespace: namespace === emptySegment ? "" : namespace, name } };
}
