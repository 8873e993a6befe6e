// GrpcService of an authorizer → how it is called (config.core.v3.GrpcService).
import type { GrpcService } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { ExtAuthz } from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import type { CompileScope } from "../../compile/compile-scope.ts";
import { durationMs } from "../../compile/duration.ts";
import type { Place, Problems } from "../../compile/problems.ts";
import { GrpcAuthorizer } from "./grpc-authorizer.ts";

/** Envoy's for authorizers. */
const defaultTimeoutMs = 200;

type Settings = Pick<ExtAuthz, "includePeerCertificate" | "includeTlsSession">;

interface GrpcBuild {
  readonly scope: CompileScope;
  readonly clusterNames: Set<string>;
  readonly problems: Problems;
}

/** Undefined after an error. */
export function compileGrpcAuthorizer(
  service: GrpcService,
  settings: Settings,
  { scope, clusterNames, problems }: GrpcBuild,
  place: Place,
): GrpcAuthorizer | undefined {
  const target = service.targetSpecifier;
  if (target.case !== "envoyGrpc") {
    problems.error(place.field("google_grpc"), "is not supported");
    return undefined;
  }
  const { clusterName, authority } = target.value;
  if (clusterName === "") {
    const at = place.field("envoy_grpc").field("cluster_name");
    problems.error(at, "value length must be at least 1 characters");
    return undefined;
  }
  clusterNames.add(clusterName);
  return new GrpcAuthorizer({
    cluster: scope.clusterSlot(clusterName),
    authority: authority === "" ? clusterName : authority,
    timeoutMs: durationMs(service.timeout, defaultTimeoutMs),
    attributes: {
      includesPeerCertificate: settings.includePeerCertificate,
      includesTlsSession: settings.includeTlsSession,
    },
  });
}
