// Small makers for the protobuf messages that every translation needs.
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack, type Any, DurationSchema, type Duration } from "@bufbuild/protobuf/wkt";
import { type Address, AddressSchema } from "@tulle/xds/envoy/config/core/v3/address_pb";
import { ApiVersion, type ConfigSource, ConfigSourceSchema } from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import { type Filter, FilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { type Metadata, MetadataSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { JsonObject } from "@bufbuild/protobuf";

export function pack<D extends DescMessage>(schema: D, init: MessageInitShape<D>): Any {
  return anyPack(schema, create(schema, init));
}

/** `value` is its packed settings. */
export function networkFilter(name: string, value: Any): Filter {
  return create(FilterSchema, { name, configType: { case: "typedConfig", value } });
}

export function durationOfMs(milliseconds: number): Duration {
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = Math.round((milliseconds - seconds * 1000) * 1e6);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos });
}

/** Zero, which switches a time limit off in most of Envoy's fields. */
export function noTimeout(): Duration {
  return durationOfMs(0);
}

export function socketAddress(address: string, port: number): Address {
  return create(AddressSchema, {
    address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } },
  });
}

/** This same ADS stream. Without a fetch time limit a proxy waits for its routes rather than answering 404. */
export function adsConfigSource(): ConfigSource {
  return create(ConfigSourceSchema, {
    configSourceSpecifier: { case: "ads", value: {} },
    initialFetchTimeout: noTimeout(),
    resourceApiVersion: ApiVersion.V3,
  });
}

/** Metadata in the namespace `istio`, which Kiali, istioctl and the metrics filter read. */
export function istioMetadata(values: JsonObject): Metadata {
  return create(MetadataSchema, { filterMetadata: { istio: values } });
}

/** Asks this mesh's own proxy for Istio's metrics of the connections of a filter chain; Envoy does not read it. */
export function connectionStats(config: JsonObject | undefined): { readonly metadata?: Metadata } {
  if (config === undefined) return {};
  return { metadata: create(MetadataSchema, { filterMetadata: { "istio.stats": config } }) };
}

/** How Istio names the resource that a route or cluster came from. */
export function configReference(kind: "virtual-service" | "destination-rule", namespace: string, name: string): string {
  return `/apis/networking.istio.io/v1/namespaces/${namespace}/${kind}/${name}`;
}
