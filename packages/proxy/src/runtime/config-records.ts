// What the proxy was told, resource by resource, beside what it runs: `/config_dump` and `/clusters` read it, and a
// refused update stands here next to the version that goes on serving.
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { ClusterLoadAssignment } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import type { Listener } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { Secret } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";

/** A version of a resource as it came. */
export interface ReceivedResource<M> {
  readonly message: M;
  /** `version_info` of the response that brought it; empty for the bootstrap's own. */
  readonly versionInfo: string;
  readonly receivedAtMs: number;
  /** Content hash, to recognise a resource that comes again unchanged. */
  readonly contentVersion: string;
}

export interface RefusedResource<M> {
  readonly message: M | undefined;
  readonly versionInfo: string;
  readonly refusedAtMs: number;
  readonly reason: string;
}

/**
 * One resource, by its name unless a key is given. `active` serves; `warming` has been accepted and waits for what it
 * needs (a cluster for endpoints, a listener for routes); `refused` is the last update when that was not accepted.
 */
export interface ResourceRecord<M> {
  readonly name: string;
  readonly isStatic: boolean;
  active: ReceivedResource<M> | undefined;
  warming: ReceivedResource<M> | undefined;
  refused: RefusedResource<M> | undefined;
}

export class ResourceRecords<M> {
  readonly #records = new Map<string, ResourceRecord<M>>();
  /** `version_info` of the last response that was accepted. */
  versionInfo = "";

  get(key: string): ResourceRecord<M> | undefined {
    return this.#records.get(key);
  }

  /** The record of that name, made when it is new; `key` where several resources may share a name. */
  of(name: string, isStatic = false, key = name): ResourceRecord<M> {
    let record = this.#records.get(key);
    if (record === undefined) {
      record = { name, isStatic, active: undefined, warming: undefined, refused: undefined };
      this.#records.set(key, record);
    }
    return record;
  }

  /** Whether that version is the one that was accepted last; an earlier refusal of another one is forgotten then. */
  holds(name: string, contentVersion: string): boolean {
    const record = this.#records.get(name);
    const accepted = record?.warming ?? record?.active;
    if (record === undefined || accepted?.contentVersion !== contentVersion) return false;
    record.refused = undefined;
    return true;
  }

  delete(key: string): void {
    this.#records.delete(key);
  }

  values(): IterableIterator<ResourceRecord<M>> {
    return this.#records.values();
  }
}

export class ConfigRecords {
  readonly clusters = new ResourceRecords<Cluster>();
  readonly endpoints = new ResourceRecords<ClusterLoadAssignment>();
  readonly listeners = new ResourceRecords<Listener>();
  /** Encoded: whoever wants to see ten thousand routes waits for them to be decoded. */
  readonly routes = new ResourceRecords<Uint8Array>();
  /** With their keys: whatever is shown of them must be redacted. */
  readonly secrets = new ResourceRecords<Secret>();
}
