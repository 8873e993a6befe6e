// A resource in the form in which it is sent: encoded once, known by name and by the hash of its content, and shared
// by every connection whose proxy has the same view.
import { createHash } from "node:crypto";
import type { Pauses } from "@tulle/timing";
import { type DescMessage, type MessageShape, create, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import type { Cluster } from "./generated/envoy/config/cluster/v3/cluster_pb.ts";
import { resourceTypeOfUrl } from "./resource-types.ts";

const versionLength = 16;
/** About a tenth of a millisecond. */
const hashedPieceBytes = 64 * 1024;

export interface EncodedResource {
  readonly name: string;
  /** The first 16 hexadecimal digits of the content's SHA-256: equal content, equal version, in every replica. */
  readonly version: string;
  readonly any: Any;
  /**
   * For a cluster whose endpoints come by EDS: the name that it asks for. A proxy that receives such a cluster anew
   * waits for these endpoints again ("warming"), though it may already have been sent them.
   */
  readonly endpointsName?: string;
}

export function contentVersion(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex").slice(0, versionLength);
}

/** The same with pauses, for megabytes. */
export async function contentVersionInSlices(content: Uint8Array, pauses: Pauses): Promise<string> {
  const hash = createHash("sha256");
  for (let start = 0; start < content.length; start += hashedPieceBytes) {
    hash.update(content.subarray(start, start + hashedPieceBytes));
    await pauses.takeIfDue();
  }
  return hash.digest("hex").slice(0, versionLength);
}

function nameOf(typeUrl: string, message: object): string {
  const onlyName = resourceTypeOfUrl(typeUrl)?.onlyName;
  if (onlyName !== undefined) return onlyName;
  if ("clusterName" in message && typeof message.clusterName === "string") return message.clusterName;
  if ("name" in message && typeof message.name === "string") return message.name;
  throw new Error("a resource needs a name");
}

/** Encodes a message of one of the resource types. */
export function encodeResource<D extends DescMessage>(schema: D, message: MessageShape<D>): EncodedResource {
  const value = toBinary(schema, message);
  const typeUrl = `type.googleapis.com/${schema.typeName}`;
  const encoded = {
    name: nameOf(typeUrl, message),
    version: contentVersion(value),
    any: create(AnySchema, { typeUrl, value }),
  };
  const endpointsName = schema.typeName === "envoy.config.cluster.v3.Cluster" ? endpointsNameOf(message) : undefined;
  return endpointsName === undefined ? encoded : { ...encoded, endpointsName };
}

function endpointsNameOf(message: object): string | undefined {
  const cluster = message as Cluster;
  const byEds = cluster.clusterDiscoveryType.case === "type" && cluster.edsClusterConfig !== undefined;
  if (!byEds) return undefined;
  return cluster.edsClusterConfig?.serviceName || cluster.name;
}
