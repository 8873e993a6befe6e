// A reference to a secret (SdsSecretConfig) into its slot: static, over the aggregated stream, or over a static gRPC cluster.
import {
  type ConfigSource,
  ApiConfigSource_ApiType as ApiType,
} from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { SdsSecretConfig } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { SecretSlot, SecretSource } from "../tls/secret-slot.ts";
import type { CompileScope } from "./compile-scope.ts";
import { durationMs } from "./duration.ts";
import type { Place, Problems } from "./problems.ts";

/** ConfigSource.initial_fetch_timeout. */
const defaultInitialFetchTimeoutMs = 15_000;

/** The slot, noted in `secrets`: what is compiled warms until they are all filled. */
export function compileSecretReference(
  config: SdsSecretConfig,
  scope: CompileScope,
  secrets: Set<SecretSlot>,
  place: Place,
  problems: Problems,
): SecretSlot | undefined {
  if (config.name === "") {
    problems.error(place.field("name"), "value length must be at least 1 characters");
    return undefined;
  }
  const source = secretSource(config.sdsConfig, place.field("sds_config"), problems);
  if (source === undefined) return undefined;
  const timeoutMs = durationMs(config.sdsConfig?.initialFetchTimeout, defaultInitialFetchTimeoutMs);
  const slot = scope.secretSlot(config.name, source, timeoutMs);
  if (source.kind === "static" && slot.current === undefined) {
    problems.error(place.field("name"), `Unknown static secret: ${config.name}`);
    return undefined;
  }
  secrets.add(slot);
  return slot;
}

function secretSource(config: ConfigSource | undefined, place: Place, problems: Problems): SecretSource | undefined {
  if (config === undefined) return { kind: "static" };
  const specifier = config.configSourceSpecifier;
  if (specifier.case === "ads" || specifier.case === "self") return { kind: "ads" };
  const at = place.field("api_config_source");
  if (specifier.case !== "apiConfigSource") {
    problems.error(place, "ads, self or an api_config_source is required");
    return undefined;
  }
  if (specifier.value.apiType !== ApiType.GRPC) {
    problems.error(at.field("api_type"), "only GRPC is supported");
    return undefined;
  }
  const service = specifier.value.grpcServices[0]?.targetSpecifier;
  if (service?.case !== "envoyGrpc" || service.value.clusterName === "") {
    problems.error(at.field("grpc_services", 0), "an envoy_grpc service is required");
    return undefined;
  }
  return { kind: "grpc", clusterName: service.value.clusterName };
}
