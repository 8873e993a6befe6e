// A reference to a secret (SdsSecretConfig) into its slot: static, over the aggregated stream, or over a stream of its
// own, or from a file.
import { existsSync } from "node:fs";
import type { ApiConfigSource, ConfigSource } from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { SdsSecretConfig } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { SecretSlot, SecretSource } from "../tls/secret-slot.ts";
import { checkApiType } from "./check-api-type.ts";
import { compileGrpcService } from "./compile-grpc-service.ts";
import type { CompileScope } from "./compile-scope.ts";
import { initialFetchTimeoutMs } from "./check-resource-source.ts";
import type { Place, Problems } from "./problems.ts";

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
  const source = secretSource(config.sdsConfig, scope, place.field("sds_config"), problems);
  if (source === undefined) return undefined;
  const timeoutMs = initialFetchTimeoutMs(config.sdsConfig);
  const slot = scope.secretSlot(config.name, source, timeoutMs);
  if (source.kind === "static" && slot.current === undefined) {
    problems.error(place.field("name"), `Unknown static secret: ${config.name}`);
    return undefined;
  }
  secrets.add(slot);
  return slot;
}

function secretSource(
  config: ConfigSource | undefined,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): SecretSource | undefined {
  if (config === undefined) return { kind: "static" };
  const specifier = config.configSourceSpecifier;
  switch (specifier.case) {
    case "ads":
    case "self":
      return { kind: "ads" };
    case "apiConfigSource":
      return grpcSource(specifier.value, scope, place.field("api_config_source"), problems);
    case "path":
      return fileSource(specifier.value, undefined, place.field("path"), problems);
    case "pathConfigSource": {
      const at = place.field("path_config_source");
      const { path, watchedDirectory } = specifier.value;
      const directory = watchedDirectory?.path;
      if (directory !== undefined && !existsSync(directory))
        problems.error(
          at.field("watched_directory").field("path"),
          directory === "" ? "value is required" : `there is no directory ${directory}`,
        );
      return fileSource(path, directory, at.field("path"), problems);
    }
    default:
      problems.error(place, "ads, self, an api_config_source or a path_config_source is required");
      return undefined;
  }
}

function fileSource(
  path: string,
  watchedDirectory: string | undefined,
  place: Place,
  problems: Problems,
): SecretSource | undefined {
  if (existsSync(path)) return { kind: "path", path, watchedDirectory };
  problems.error(place, `there is no file ${path === "" ? "without a name" : path}`);
  return undefined;
}

function grpcSource(
  source: ApiConfigSource,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): SecretSource | undefined {
  if (!checkApiType(source.apiType, place.field("api_type"), problems)) return undefined;
  const at = place.field("grpc_services", 0);
  const service = source.grpcServices[0];
  if (service === undefined || source.grpcServices.length > 1) {
    problems.error(place.field("grpc_services"), "exactly one service is required");
    return undefined;
  }
  const target = compileGrpcService(service, at, problems);
  if (target === undefined) return undefined;
  if (scope.staticClusterNames?.has(target.clusterName) === false) {
    problems.error(at.field("envoy_grpc").field("cluster_name"), `unknown static cluster '${target.clusterName}'`);
  }
  return { kind: "grpc", target };
}
