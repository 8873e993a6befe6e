// A gRPC service that a cluster leads to (config.core.v3.GrpcService.EnvoyGrpc). What would be secret, or would prove
// who we are, and cannot be sent is an error: nobody shall believe that it went along.
import type { HeaderValue } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { GrpcService } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { GrpcTarget } from "../http/grpc-target.ts";
import { checkHeaderText } from "./check-header-text.ts";
import type { Place, Problems } from "./problems.ts";

/** Undefined after an error. `checkFields` has looked at the message already, as part of what it stands in. */
export function compileGrpcService(service: GrpcService, place: Place, problems: Problems): GrpcTarget | undefined {
  const specifier = service.targetSpecifier;
  if (specifier.case === "googleGrpc") {
    problems.error(place.field("google_grpc"), "is not supported");
    return undefined;
  }
  if (specifier.case !== "envoyGrpc") {
    problems.error(place, "an envoy_grpc service is required");
    return undefined;
  }
  const { clusterName, authority, maxReceiveMessageLength } = specifier.value;
  const at = place.field("envoy_grpc");
  if (clusterName === "") {
    problems.error(at.field("cluster_name"), "value length must be at least 1 characters");
    return undefined;
  }
  return {
    clusterName,
    authority: authority === "" ? clusterName : checkHeaderText(authority, at.field("authority"), problems),
    metadata: compileMetadata(service.initialMetadata, place, problems),
    maxMessageBytes: maxReceiveMessageLength,
  };
}

const metadataName = /^[0-9a-z_.-]+$/;

/** Of the connection, or of gRPC itself (gRPC over HTTP/2, "Custom-Metadata"). */
function isReserved(name: string): boolean {
  return name.startsWith("grpc-") || ["te", "content-type", "host", "connection", "transfer-encoding"].includes(name);
}

/** GrpcService.initial_metadata. */
export function compileMetadata(
  list: readonly HeaderValue[],
  place: Place,
  problems: Problems,
): readonly (readonly [name: string, value: string])[] {
  return list.map(({ key, value, rawValue }, index) => {
    const at = place.field("initial_metadata", index);
    const name = key.toLowerCase();
    if (!metadataName.test(name) || isReserved(name)) {
      problems.error(at.field("key"), `'${key}' cannot be the name of metadata`);
    }
    const text = rawValue.length > 0 ? Buffer.from(rawValue).toString() : value;
    // Envoy fills command operators in, from a request that a stream does not have.
    if (/%[^%]/.test(text.replaceAll("%%", ""))) {
      problems.error(at.field("value"), "command operators (%…%) are not supported here; a percent sign is written %%");
    }
    return [name, checkHeaderText(text.replaceAll("%%", "%"), at.field("value"), problems)];
  });
}
