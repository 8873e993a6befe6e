// What a proxy gets for a cluster that there is not: no endpoints. Everyone who asks for the same name gets the same
// resource.
import { create } from "@bufbuild/protobuf";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";

/**
 * Names are the client's invention: beyond this many all are forgotten here, and made anew for whoever still needs one.
 */
export const maxSharedNames = 8192;

export class EmptyEndpoints {
  readonly #byName = new Map<string, EncodedResource>();

  get size(): number {
    return this.#byName.size;
  }

  of(clusterName: string): EncodedResource {
    const known = this.#byName.get(clusterName);
    if (known !== undefined) return known;
    if (this.#byName.size >= maxSharedNames) this.#byName.clear();
    const message = create(ClusterLoadAssignmentSchema, { clusterName });
    const resource = encodeResource(ClusterLoadAssignmentSchema, message);
    this.#byName.set(clusterName, resource);
    return resource;
  }
}
