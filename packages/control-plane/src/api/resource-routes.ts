// List, get, watch, apply and delete of resources, by the contract in @tulle/config's api.ts.
import type { IncomingMessage } from "node:http";
import {
  type ApplyRequest,
  findingsPath,
  gracePeriodParameter,
  beyondBounds,
  isKind,
  type Kind,
  keyOf,
  keyText,
  maxApplyBodyBytes,
  type MeshResource,
  parseResource,
  parseResourcePath,
  type ResourceKey,
  resourcesPath,
  type Store,
  StoreRefusal,
  type StoreRefusalReason,
  watchPath,
} from "@tulle/config";
import type { Finding } from "@tulle/config";
import type { ResourceRejection } from "../serve/resource-status.ts";
import { checkResource } from "../snapshot/check-resource.ts";
import { type ApiAnswer, ApiFailure, type ApiRequest, type ApiRoute } from "./http-api.ts";
import { WatchStreams } from "./watch-streams.ts";

/** What proxies and checks say of a resource; shown as its `status` where there is something. */
export interface ResourceStatus {
  readonly findings?: readonly Finding[];
  readonly rejections?: readonly ResourceRejection[];
}

export interface ResourceRoutesOptions {
  readonly store: Store;
  readonly findings: () => readonly Finding[];
  readonly statusOf: (key: ResourceKey) => ResourceStatus | undefined;
  /** Applied and loaded together; `defaultMaxResources` when missing. */
  readonly maxResources?: number | undefined;
}

/** Ten times what a mesh of 1,000 Services has. */
export const defaultMaxResources = 100_000;

export function resourceRoutes(options: ResourceRoutesOptions): {
  readonly routes: readonly ApiRoute[];
  close(): void;
} {
  const { store } = options;
  const streams = new WatchStreams(store);
  const routes: readonly ApiRoute[] = [
    {
      method: "GET",
      path: `${resourcesPath}/`,
      summary: "list a kind, or get one object",
      handle: (request) => read(options, request),
    },
    {
      method: "PUT",
      path: `${resourcesPath}/`,
      summary: "create or replace one object",
      handle: (request) => put(store, request, options.maxResources ?? defaultMaxResources),
    },
    {
      method: "DELETE",
      path: `${resourcesPath}/`,
      summary: "delete one object",
      handle: (request) => remove(store, request),
    },
    {
      method: "GET",
      path: watchPath,
      summary: "follow changes (?kinds=A,B&resourceVersion=N)",
      handle: (request) => watch(streams, request),
    },
    {
      method: "GET",
      path: findingsPath,
      summary: "what is wrong with the configuration",
      handle: () => ({ status: 200, json: { findings: options.findings() } }),
    },
  ];
  return { routes, close: () => streams.close() };
}

function read({ store, statusOf }: ResourceRoutesOptions, { path, query }: ApiRequest): ApiAnswer {
  const { kind, object } = target(path);
  const shown = (resource: MeshResource): unknown => withStatus(resource, statusOf);
  if (object === undefined) {
    const namespace = query.get("namespace") ?? undefined;
    const items = store.list(kind, namespace).map(shown);
    return { status: 200, json: { resourceVersion: store.resourceVersion, items } };
  }
  const resource = store.get(kind, object.namespace, object.name);
  if (resource === undefined) throw missing({ kind, ...object });
  return { status: 200, json: shown(resource) };
}

function withStatus(resource: MeshResource, statusOf: ResourceRoutesOptions["statusOf"]): unknown {
  const status = statusOf(keyOf(resource));
  return status === undefined ? resource : { ...resource, status };
}

async function put(store: Store, { path, request }: ApiRequest, maxResources: number): Promise<ApiAnswer> {
  const { kind, object } = target(path);
  if (object === undefined) throw new ApiFailure(400, "name the object to apply: <kind>/<namespace>/<name>");
  const { resource: document, places } = applyRequest(await readBody(request));
  const { resource, findings } = parseResource(document, places);
  if (resource === undefined) {
    throw new ApiFailure(422, findings[0]?.message ?? "the resource is not valid", findings);
  }
  const spoiling = checkResource(resource);
  if (spoiling.length > 0) throw new ApiFailure(422, spoiling[0]!.message, [...findings, ...spoiling]);
  const wanted = { kind, ...object };
  if (keyText(keyOf(resource)) !== keyText(wanted)) {
    throw new ApiFailure(400, `the path names ${keyText(wanted)} and the body ${keyText(keyOf(resource))}`);
  }
  const isNew = store.get(kind, object.namespace, object.name) === undefined;
  if (isNew && store.all().length >= maxResources) {
    throw new ApiFailure(507, `the mesh has ${maxResources} resources, which is the limit: delete some first`);
  }
  const result = await orRefused(store.apply(resource));
  const status = result.outcome === "created" ? 201 : 200;
  return { status, json: { ...result, findings: [...findings, ...result.findings] } };
}

async function remove(store: Store, { path, query }: ApiRequest): Promise<ApiAnswer> {
  const { kind, object } = target(path);
  if (object === undefined) throw new ApiFailure(400, "name the object to delete: <kind>/<namespace>/<name>");
  const key = { kind, ...object };
  const resource = await orRefused(store.delete(key, { atOnce: query.get(gracePeriodParameter) === "0" }));
  if (resource === undefined) throw missing(key);
  return { status: 200, json: { resource } };
}

const statusOfRefusal: Readonly<Record<StoreRefusalReason, number>> = {
  conflict: 409,
  forbidden: 403,
  unavailable: 503,
};

async function orRefused<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof StoreRefusal ? new ApiFailure(statusOfRefusal[error.reason], error.message) : error;
  }
}

function watch(streams: WatchStreams, { query, transport, request, response }: ApiRequest): undefined {
  // A watch without a body would hold its place among the watches until the client leaves.
  if (request.method === "HEAD") throw new ApiFailure(405, "a watch is asked for with GET");
  const names = (query.get("kinds") ?? "").split(",").filter((name) => name !== "");
  const unknown = names.find((name) => !isKind(name));
  if (unknown !== undefined) throw new ApiFailure(404, `there is no kind ${unknown}`);
  const version = query.get("resourceVersion");
  if (version !== null && !/^\d+$/.test(version)) throw new ApiFailure(400, "resourceVersion has to be a number");
  streams.open(response, new Set(names.filter(isKind)), version === null ? undefined : Number(version), transport);
}

function target(path: string): {
  readonly kind: Kind;
  readonly object?: { readonly namespace: string; readonly name: string };
} {
  const parsed = parseResourcePath(path);
  if (parsed === undefined) throw new ApiFailure(404, `${path} names no resource`);
  const { kind, object } = parsed;
  if (!isKind(kind)) throw new ApiFailure(404, `there is no kind ${kind}`);
  return object === undefined ? { kind } : { kind, object };
}

function missing(key: ResourceKey): ApiFailure {
  const where = key.namespace === "" ? "" : ` in namespace ${key.namespace}`;
  return new ApiFailure(404, `there is no ${key.kind} ${key.name}${where}`);
}

/** The documented body, or a bare manifest. */
function applyRequest(text: string): ApplyRequest {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    // V8 quotes what stands around the mistake, and a Secret's values are for nobody's log.
    const reason = text.includes('"Secret"') ? "" : `: ${(error as Error).message}`;
    throw new ApiFailure(400, `the body is not JSON${reason}`);
  }
  if (typeof body !== "object" || body === null) throw new ApiFailure(400, "the body has to be an object");
  const problem = beyondBounds("resource" in body ? body.resource : body);
  if (problem !== undefined) throw new ApiFailure(413, problem);
  return "apiVersion" in body || !("resource" in body) ? { resource: body } : body;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxApplyBodyBytes) throw new ApiFailure(413, `the body is larger than ${maxApplyBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
