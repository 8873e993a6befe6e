/**
 * The control plane's HTTP API for resources (port 15014): paths, bodies and watch events. Server and client are both built
 * from this file, so that they cannot drift apart.
 */
import type { Finding } from "../findings/finding.ts";
import type { Kind } from "../kinds/kinds.ts";
import type { PlaceTable } from "../findings/places.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { ResourceKey } from "../findings/finding.ts";
import type { ApplyResult } from "../store/store.ts";

export const apiPort = 15014;
/** Of the Unix socket in the state directory; `@tulle/identity/own` has its path. */
export const apiSocketName = "control-plane.sock";

/** `GET /api/v1/resources/{kind}?namespace=` and, with namespace and name, GET, PUT and DELETE of one object. */
export const resourcesPath = "/api/v1/resources";
/** `GET /api/v1/watch?kinds=A,B&resourceVersion=N`: newline-delimited JSON of `WatchEvent`. */
export const watchPath = "/api/v1/watch";
export const findingsPath = "/api/v1/findings";

/** Of a DELETE, as in Kubernetes: with 0 a pod that runs is not asked to leave in good order, its object goes now. */
export const gracePeriodParameter = "gracePeriodSeconds";

/** Stands for the empty namespace of kinds without one, since a path segment cannot be empty. */
export const noNamespaceSegment = "-";

export const watchContentType = "application/x-ndjson";

/** Largest body of a PUT; Kubernetes' own limit for an object is 1.5 MiB (etcd). */
export const maxApplyBodyBytes = 3 * 1024 * 1024;

/** A bookmark at least this often, so that a client can tell a silent connection from a dead one. */
export const bookmarkIntervalMs = 15_000;

export interface ListResponse<K extends Kind = Kind> {
  readonly resourceVersion: number;
  readonly items: readonly ResourceOf<K>[];
}

export type WatchEvent =
  | {
      readonly type: "added" | "modified" | "deleted";
      readonly resourceVersion: number;
      readonly resource: MeshResource;
    }
  /** Nothing new of the wanted kinds up to this version. */
  | { readonly type: "bookmark"; readonly resourceVersion: number };

/**
 * Body of a PUT. `resource` is the manifest as parsed (not yet checked: the server does). `places` makes the findings point
 * into the user's file, now and later. A bare manifest (an object with `apiVersion`) is accepted too.
 */
export interface ApplyRequest {
  readonly resource: unknown;
  readonly places?: PlaceTable;
}

/** 201 when created, else 200. */
export type ApplyResponse = ApplyResult;

export interface DeleteResponse {
  readonly resource: MeshResource;
}

export interface FindingsResponse {
  readonly findings: readonly Finding[];
}

/**
 * Body of every answer from 400 on: 400 bad request, 401 no or wrong token, 404 no such object or kind, 410 `resourceVersion`
 * too old (list again), 413 body too large, 422 the resource is not valid (`findings` says why).
 */
export interface ErrorResponse {
  readonly error: { readonly code: number; readonly message: string };
  readonly findings?: readonly Finding[];
}

/** Path of all objects of a kind. */
export function kindPath(kind: string): string {
  return `${resourcesPath}/${encodeURIComponent(kind)}`;
}

/** Path of one object. */
export function resourcePath(key: ResourceKey): string {
  const namespace = key.namespace === "" ? noNamespaceSegment : key.namespace;
  return `${kindPath(key.kind)}/${encodeURIComponent(namespace)}/${encodeURIComponent(key.name)}`;
}

/** What a request path below `resourcesPath` names; undefined when it is no such path. The kind is not checked. */
export function parseResourcePath(
  pathname: string,
): { readonly kind: string; readonly object?: { readonly namespace: string; readonly name: string } } | undefined {
  if (!pathname.startsWith(`${resourcesPath}/`)) return undefined;
  let segments: string[];
  try {
    segments = pathname
      .slice(resourcesPath.length + 1)
      .split("/")
      .map(decodeURIComponent);
  } catch {
    return undefined; // a malformed percent escape
  }
  const [kind = "", namespace, name] = segments;
  if (kind === "" || segments.includes("")) return undefined;
  if (namespace === undefined) return { kind };
  if (name === undefined || segments.length > 3) return undefined;
  return { kind, object: { namespace: namespace === noNamespaceSegment ? "" : namespace, name } };
}
