// List, get, watch, apply and delete of resources, by the contract in @tulle/config's api.ts.
import {
  beyondBounds,
  isKind,
  type Kind,
  kindDefinitions,
  keyOf,
  keyText,
  type MeshResource,
  parseResource,
  type ResourceKey,
  type Store,
  StoreRefusal,
  type StoreRefusalReason,
} from "@tulle/config";
import {
  type ApplyRequest,
  type ApplyResponse,
  type DeleteResponse,
  parseResourcePath,
  type ResourceList,
  type ResourceStatus,
  type resourceEndpoints,
  type ShownResource,
  type WatchEvent,
} from "@tulle/config/api";
import type { Finding } from "@tulle/config";
import type { ControlPlaneMetrics } from "../serve/metrics.ts";
import { checkResource } from "../snapshot/check-resource.ts";
import { ApiFailure } from "./api-failure.ts";
import { changeAuthor } from "./change-author.ts";
import { readBody } from "./read-body.ts";
import type { ApiRequest, Handlers, JsonReply } from "./routes.ts";
import type { EventStream } from "./event-stream.ts";
import { WatchStreams } from "./watch-streams.ts";

export interface ResourceRoutesOptions {
  readonly store: Store;
  readonly findings: () => readonly Finding[];
  readonly statusOf: (key: ResourceKey) => ResourceStatus | undefined;
  readonly metrics: Pick<ControlPlaneMetrics, "refused">;
  /** Applied and loaded together; `defaultMaxResources` when missing. */
  readonly maxResources?: number | undefined;
}

/** Ten times what a mesh of 1,000 Services has. */
export const defaultMaxResources = 100_000;

export function resourceRoutes(options: ResourceRoutesOptions): {
  readonly handlers: Handlers<typeof resourceEndpoints>;
  close(): void;
} {
  const { store } = options;
  const streams = new WatchStreams(store);
  const handlers: Handlers<typeof resourceEndpoints> = {
    listResources: (request) => list(options, request),
    readResource: (request) => read(options, request),
    applyResource: (request) => put(options, request),
    deleteResource: (request) => remove(store, request),
    watch: (request) => watch(streams, request),
    findings: () => ({ status: 200, json: { findings: options.findings() } }),
  };
  return { handlers, close: () => streams.close() };
}

function list({ store, statusOf }: ResourceRoutesOptions, { path, query }: ApiRequest): JsonReply<ResourceList> {
  const { kind } = target(path);
  const items = store.list(kind, query.get("namespace") ?? undefined).map((each) => withStatus(each, statusOf));
  return { status: 200, json: { resourceVersion: store.resourceVersion, items } };
}

function read({ store, statusOf }: ResourceRoutesOptions, { path }: ApiRequest): JsonReply<ShownResource> {
  const { kind, object } = target(path);
  if (object === undefined) throw new ApiFailure(404, `${path} names no resource`);
  const resource = store.get(kind, object.namespace, object.name);
  if (resource === undefined) throw missing({ kind, ...object });
  return { status: 200, json: withStatus(resource, statusOf) };
}

function withStatus(resource: MeshResource, statusOf: ResourceRoutesOptions["statusOf"]): ShownResource {
  const status = statusOf(keyOf(resource));
  return status === undefined ? resource : { ...resource, status };
}

async function put(
  { store, metrics, maxResources = defaultMaxResources }: ResourceRoutesOptions,
  asked: ApiRequest,
): Promise<JsonReply<ApplyResponse>> {
  const { path, request } = asked;
  const { kind, object } = target(path);
  if (object === undefined) throw new ApiFailure(400, "name the object to apply: <kind>/<namespace>/<name>");
  const { resource: document, places } = applyRequest(await readBody(request));
  const { resource, findings } = parseResource(document, places);
  const spoiling = resource === undefined ? [] : checkResource(resource);
  if (resource === undefined || spoiling.length > 0) metrics.refused(kind).increment();
  if (resource === undefined) {
    throw new ApiFailure(422, findings[0]?.message ?? "the resource is not valid", findings);
  }
  if (spoiling.length > 0) throw new ApiFailure(422, spoiling[0]!.message, [...findings, ...spoiling]);
  const wanted = { kind, ...object };
  if (keyText(keyOf(resource)) !== keyText(wanted)) {
    throw new ApiFailure(400, `the path names ${keyText(wanted)} and the body ${keyText(keyOf(resource))}`);
  }
  const isNew = store.get(kind, object.namespace, object.name) === undefined;
  if (isNew && store.all().length >= maxResources) {
    throw new ApiFailure(507, `the mesh has ${maxResources} resources, which is the limit: delete some first`);
  }
  const result = await orRefused(store.apply(resource, { by: authorOf(kind, asked) }));
  const status = result.outcome === "created" ? 201 : 200;
  return { status, json: { ...result, findings: [...findings, ...result.findings] } };
}

/** Of what people write; whoever runs pods writes often. */
function authorOf(kind: Kind, asked: ApiRequest): string | undefined {
  return kindDefinitions[kind].writtenBy === "user" ? changeAuthor(asked) : undefined;
}

async function remove(store: Store, asked: ApiRequest): Promise<JsonReply<DeleteResponse>> {
  const { path, query } = asked;
  const { kind, object } = target(path);
  if (object === undefined) throw new ApiFailure(400, "name the object to delete: <kind>/<namespace>/<name>");
  const key = { kind, ...object };
  const options = { atOnce: query.get("gracePeriodSeconds") === "0", by: authorOf(kind, asked) };
  const resource = await orRefused(store.delete(key, options));
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

function watch(streams: WatchStreams, { query, transport, request }: ApiRequest) {
  // A watch without a body would hold its place among the watches until the client leaves.
  if (request.method === "HEAD") throw new ApiFailure(405, "a watch is asked for with GET");
  const names = (query.get("kinds") ?? "").split(",").filter((name) => name !== "");
  const unknown = names.find((name) => !isKind(name));
  if (unknown !== undefined) throw new ApiFailure(404, `there is no kind ${unknown}`);
  const version = query.get("resourceVersion");
  if (version !== null && !/^\d+$/.test(version)) throw new ApiFailure(400, "resourceVersion has to be a number");
  const kinds = new Set(names.filter(isKind));
  return {
    follow: (stream: EventStream<WatchEvent>) =>
      streams.open(stream, kinds, version === null ? undefined : Number(version), transport),
  };
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
