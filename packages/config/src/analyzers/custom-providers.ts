/**
 * IST0101: an AuthorizationPolicy of the action CUSTOM whose provider nobody knows, and a provider whose Service is not
 * there: what the policy matches is denied, or telemetry goes nowhere. IST0133: a second configuration of the mesh,
 * which is not read, and a provider that speaks gRPC to a port of another name.
 */
import { isMeshConfig, meshConfigKey, meshConfigMap, meshConfigOf, providerHost } from "../mesh-config/mesh-config.ts";
import type { ExtensionProvider } from "../mesh-config/mesh-config.ts";
import { portProtocol } from "../rules/port-protocol.ts";
import { clusterDomain } from "../rules/resolve-host.ts";
import { nearestName } from "../findings/nearest-name.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

const speaksGrpc: ReadonlySet<string> = new Set(["grpc", "grpc-web", "http2"]);

export const customProviders: Analyzer = {
  name: "custom-providers",
  codes: ["IST0101", "IST0133"],
  *run(mesh) {
    const providers = meshConfigOf(mesh.list("ConfigMap")).extensionProviders ?? [];
    const names = providers
      .filter(({ envoyExtAuthzHttp, envoyExtAuthzGrpc }) => (envoyExtAuthzHttp ?? envoyExtAuthzGrpc) !== undefined)
      .map(({ name }) => name);
    for (const resource of mesh.list("AuthorizationPolicy")) {
      const { action, provider } = resource.spec;
      if (action !== "CUSTOM" || provider === undefined || names.includes(provider.name)) continue;
      const nearest = nearestName(provider.name, names);
      yield {
        code: "IST0101",
        resource,
        path: ["spec", "provider", "name"],
        message: `no extension provider of the mesh's configuration is called "${provider.name}": what the policy matches is denied`,
        suggestion:
          nearest === undefined
            ? 'Add it to "extensionProviders" in the ConfigMap "tulle" of the namespace tulle-system, under the key "mesh".'
            : `Did you mean "${nearest}"?`,
      };
    }
    yield* ofMeshConfig(mesh);
  },
};

function* ofMeshConfig(mesh: AnalyzedMesh): Iterable<Discovery> {
  const all = mesh.list("ConfigMap");
  const used = meshConfigMap(all);
  const path = ["data", meshConfigKey];
  for (const resource of all) {
    if (resource === used || !isMeshConfig(resource) || resource.data?.[meshConfigKey] === undefined) continue;
    const { namespace, name } = used!.metadata;
    const message = `the mesh has another configuration, the ConfigMap ${namespace}/${name}, and this one is not read`;
    yield { code: "IST0133", resource, path, message };
  }
  if (used === undefined) return;
  for (const { name, ...settings } of meshConfigOf(all).extensionProviders ?? []) {
    const address = addressOf(settings);
    if (address === undefined) continue;
    const { service, port, mayBeOutside } = address;
    const found = mesh.servicesByHost.get(providerHost(service));
    if (found === undefined && mayBeOutside && !providerHost(service).endsWith(`.svc.${clusterDomain}`)) continue;
    const servicePort = found?.spec.ports.find((each) => each.port === port);
    if (servicePort !== undefined) {
      if (!address.isGrpc || speaksGrpc.has(portProtocol(servicePort))) continue;
      yield {
        code: "IST0133",
        resource: used,
        path,
        message: `mesh: the provider "${name}" speaks gRPC to port ${port} of "${service}", whose name does not say so`,
        suggestion: 'Call the port "grpc" or "grpc-<suffix>".',
      };
      continue;
    }
    yield {
      code: "IST0101",
      resource: used,
      path,
      message:
        found === undefined
          ? `mesh: the provider "${name}" asks "${service}", which is no Service of the mesh`
          : `mesh: the provider "${name}" asks port ${port} of "${service}", which has no such port`,
      suggestion: "Its host is written in full: <name>.<namespace>.svc.cluster.local.",
    };
  }
}

interface ProviderAddress {
  readonly service: string;
  readonly port: number;
  /** Hosts outside the mesh are looked up in DNS. */
  readonly mayBeOutside: boolean;
  readonly isGrpc: boolean;
}

function addressOf(settings: Omit<ExtensionProvider, "name">): ProviderAddress | undefined {
  const { envoyExtAuthzHttp, envoyExtAuthzGrpc, opentelemetry, zipkin } = settings;
  const { envoyOtelAls, envoyHttpAls, envoyTcpAls } = settings;
  const authorizer = envoyExtAuthzHttp ?? envoyExtAuthzGrpc;
  if (authorizer !== undefined) return { ...authorizer, mayBeOutside: false, isGrpc: false };
  const address = opentelemetry ?? zipkin ?? envoyOtelAls ?? envoyHttpAls ?? envoyTcpAls;
  if (address === undefined) return undefined;
  return { ...address, mayBeOutside: true, isGrpc: zipkin === undefined && opentelemetry?.http === undefined };
}
