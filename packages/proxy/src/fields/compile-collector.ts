// Where batches of spans, log records and metrics go: a gRPC service or one over HTTP, by a cluster
// (config.core.v3.GrpcService, config.core.v3.HttpService).
import type { GrpcService } from "@tulle/xds/envoy/config/core/v3/grpc_service_pb";
import type { HttpService } from "@tulle/xds/envoy/config/core/v3/http_service_pb";
import type { GrpcCollector, HttpCollector } from "../upstream/batch-exporter.ts";
import { productVersion } from "../runtime/product-version.ts";
import { checkHeaderText } from "./check-header-text.ts";
import { compileGrpcService } from "./compile-grpc-service.ts";
import type { CompileScope } from "./compile-scope.ts";
import { durationMs } from "./duration.ts";
import type { Place, Problems } from "./problems.ts";

/** OpenTelemetry's protocol exporter, "User Agent". */
const userAgent = `OTel-OTLP-Exporter-Tulle/${productVersion}`;

/** Undefined after an error. */
export function compileGrpcCollector(
  service: GrpcService,
  path: string,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): GrpcCollector | undefined {
  const target = compileGrpcService(service, place, problems);
  if (target === undefined) return undefined;
  const timeoutMs = durationMs(service.timeout, 0);
  return { protocol: "grpc", cluster: scope.clusterSlot(target.clusterName), target, path, timeoutMs };
}

export function compileHttpCollector(
  { httpUri, requestHeadersToAdd }: HttpService,
  contentType: string,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): HttpCollector | undefined {
  const at = place.field("http_uri");
  if (httpUri?.httpUpstreamType.case !== "cluster") {
    problems.error(at, "value is required");
    return undefined;
  }
  if (!URL.canParse(httpUri.uri)) {
    problems.error(at.field("uri"), `'${httpUri.uri}' is no URL`);
    return undefined;
  }
  const { protocol, host, pathname, search } = new URL(httpUri.uri);
  const headers = requestHeadersToAdd.map(({ header }, index): readonly [string, string] => {
    const value = place.field("request_headers_to_add", index).field("header").field("value");
    return [header?.key.toLowerCase() ?? "", checkHeaderText(header?.value ?? "", value, problems)];
  });
  const timeoutMs = durationMs(httpUri.timeout, 0);
  // Envoy's asynchronous client tells it, too.
  const told = timeoutMs === 0 ? [] : [["x-envoy-expected-rq-timeout-ms", String(timeoutMs)] as const];
  return {
    protocol: "http",
    cluster: scope.clusterSlot(httpUri.httpUpstreamType.value),
    scheme: protocol === "https:" ? "https" : "http",
    authority: host,
    path: `${pathname}${search}`,
    headers: [["content-type", contentType], ["user-agent", userAgent], ...told, ...headers],
    timeoutMs,
  };
}
