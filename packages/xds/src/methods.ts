// Where xDS is spoken: the gRPC services that carry it, and the method of each variant.

/** Which gRPC service carries the stream: all types together, or secrets alone (an agent's socket for its proxy). */
export type XdsService = "ads" | "sds";

/** State of the world, or what has changed (Envoy: api_type GRPC and DELTA_GRPC). */
export type XdsVariant = "sotw" | "delta";

/** gRPC method paths; unused by name elsewhere, so that no service descriptor needs loading. */
export const xdsMethods: Readonly<Record<XdsService, Readonly<Record<XdsVariant, string>>>> = {
  ads: {
    sotw: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    delta: "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
  },
  sds: {
    sotw: "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets",
    delta: "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
  },
};
