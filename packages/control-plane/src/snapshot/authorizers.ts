// Extension providers of the mesh's configuration that authorize requests → their part of the snapshot. One whose
// Service is not there is left out: policies that name it deny what they match.
import { parseDuration, providerHost } from "@tulle/config";
import type { GrpcAuthorizerProvider, HttpAuthorizerProvider, MeshConfig } from "@tulle/config";
import type { MeshService } from "./mesh-snapshot.ts";

export interface MeshAuthorizer {
  /** What policies call it. */
  readonly name: string;
  /** Of its Service. */
  readonly hostname: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly settings:
    | { readonly protocol: "http"; readonly provider: HttpAuthorizerProvider }
    | { readonly protocol: "grpc"; readonly provider: GrpcAuthorizerProvider };
}

/** Istio's, where the provider says nothing. */
const defaultTimeoutMs = 600_000;

export function meshAuthorizers(config: MeshConfig, services: readonly MeshService[]): readonly MeshAuthorizer[] {
  return (config.extensionProviders ?? []).flatMap(({ name, envoyExtAuthzHttp: http, envoyExtAuthzGrpc: grpc }) => {
    const provider = http ?? grpc;
    if (provider === undefined) return [];
    const hostname = providerHost(provider.service);
    const service = services.find((each) => each.hostname === hostname);
    if (service?.ports.some(({ number }) => number === provider.port) !== true) return [];
    const timeoutMs = provider.timeout === undefined ? defaultTimeoutMs : parseDuration(provider.timeout)!;
    const settings: MeshAuthorizer["settings"] =
      http === undefined ? { protocol: "grpc", provider: grpc! } : { protocol: "http", provider: http };
    return [{ name, hostname, port: provider.port, timeoutMs, settings }];
  });
}
