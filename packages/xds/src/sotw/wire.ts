// The two messages of a state-of-the-world stream as bytes. Server, client and relay share it.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { ControlPlaneSchema, type Node } from "../generated/envoy/config/core/v3/base_pb.ts";
import {
  type DiscoveryRequest,
  DiscoveryRequestSchema,
  type DiscoveryResponse,
  DiscoveryResponseSchema,
  ResourceSchema,
} from "../generated/envoy/service/discovery/v3/discovery_pb.ts";
import { StatusSchema } from "../generated/google/rpc/status_pb.ts";
import { nameOfAny } from "../resource-name.ts";
import type { SotwRequest } from "./client-stream.ts";

// google.rpc.Code.INVALID_ARGUMENT; servers only look whether `error_detail` is there.
const invalidArgument = 3;

export function encodeRequest(request: SotwRequest, node: Node): Uint8Array {
  const { type, names, versionInfo, nonce, error, first } = request;
  return toBinary(
    DiscoveryRequestSchema,
    create(DiscoveryRequestSchema, {
      typeUrl: type.typeUrl,
      resourceNames: [...names],
      versionInfo,
      responseNonce: nonce,
      ...(first ? { node } : {}),
      ...(error === undefined ? {} : { errorDetail: create(StatusSchema, { code: invalidArgument, message: error }) }),
    }),
  );
}

/** @throws if the bytes are no DiscoveryRequest; the words are for who sent them */
export function decodeRequest(bytes: Uint8Array): DiscoveryRequest {
  try {
    return fromBinary(DiscoveryRequestSchema, bytes);
  } catch (error) {
    throw new Error(`not a DiscoveryRequest: ${String(error)}`, { cause: error });
  }
}

export interface ResponseParts {
  readonly typeUrl: string;
  readonly versionInfo: string;
  readonly nonce: string;
  readonly resources: readonly Any[];
  /** `control_plane.identifier`; left out when empty. */
  readonly controlPlaneId?: string;
}

export function encodeResponse(parts: ResponseParts): Uint8Array {
  const { typeUrl, versionInfo, nonce, resources, controlPlaneId = "" } = parts;
  return toBinary(
    DiscoveryResponseSchema,
    create(DiscoveryResponseSchema, {
      typeUrl,
      versionInfo,
      nonce,
      resources: [...resources],
      ...(controlPlaneId === "" ? {} : { controlPlane: create(ControlPlaneSchema, { identifier: controlPlaneId }) }),
    }),
  );
}

/** @throws if the bytes are no DiscoveryResponse */
export function decodeResponse(bytes: Uint8Array): DiscoveryResponse {
  return decodeResponseParts(bytes).response;
}

/** What stands around the resources of a response. */
export interface DecodedResponse {
  /** Its resources are those that came, without their wrappers. */
  readonly response: DiscoveryResponse;
  /** Names of resources that are said to live on, without being sent again (xDS protocol, "TTL"). */
  readonly heartbeats: readonly string[];
  /** Milliseconds by name, of both. */
  readonly timesToLiveMs: ReadonlyMap<string, number>;
}

/**
 * A resource may stand in a `Resource` wrapper, which carries a time to live; without a resource in it, it is a
 * heartbeat.
 * @throws if the bytes are no DiscoveryResponse
 */
export function decodeResponseParts(bytes: Uint8Array): DecodedResponse {
  const response = readResponse(bytes);
  const heartbeats: string[] = [];
  const timesToLiveMs = new Map<string, number>();
  response.resources = response.resources.flatMap((any) => {
    if (any.typeUrl !== wrapperUrl) return [any];
    const { name, resource, ttl } = fromBinary(ResourceSchema, any.value);
    const own = resource === undefined ? name : nameOfAny(resource) || name;
    if (ttl !== undefined) timesToLiveMs.set(own, Number(ttl.seconds) * 1000 + ttl.nanos / 1_000_000);
    if (resource === undefined) heartbeats.push(name);
    return resource === undefined ? [] : [resource];
  });
  return { response, heartbeats, timesToLiveMs };
}

function readResponse(bytes: Uint8Array): DiscoveryResponse {
  try {
    return fromBinary(DiscoveryResponseSchema, bytes);
  } catch (error) {
    throw new Error(`not a DiscoveryResponse: ${String(error)}`, { cause: error });
  }
}

const wrapperUrl = `type.googleapis.com/${ResourceSchema.typeName}`;
