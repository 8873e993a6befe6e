// GrpcService of an authorizer → how it is called (config.core.v3.GrpcService).
import type { GrpcService } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { ExtAuthz } from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import { compileGrpcService } from "../../../fields/compile-grpc-service.ts";
import type { CompileScope } from "../../../fields/compile-scope.ts";
import { durationMs } from "../../../fields/duration.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
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
  const target = compileGrpcService(service, place, problems);
  if (target === undefined) return undefined;
  clusterNames.add(target.clusterName);
  return new GrpcAuthorizer({
    cluster: scope.clusterSlot(target.clusterName),
    target,
    timeoutMs: durationMs(service.timeout, defaultTimeoutMs),
    attributes: {
      includesPeerCertificate: settings.includePeerCertificate,
      includesTlsSession: settings.includeTlsSession,
    },
  });
}
