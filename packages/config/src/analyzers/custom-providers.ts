/**
 * IST0101: an AuthorizationPolicy of the action CUSTOM whose provider nobody knows, and a provider whose Service is not
 * there: what the policy matches is denied. IST0133: a second configuration of the mesh, which is not read.
 */
import { isMeshConfig, meshConfigKey, meshConfigMap, meshConfigOf, providerHost } from "../mesh-config/mesh-config.ts";
import { nearestName } from "../findings/nearest-name.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

export const customProviders: Analyzer = {
  name: "custom-providers",
  codes: ["IST0101", "IST0133"],
  *run(mesh) {
    const providers = meshConfigOf(mesh.list("ConfigMap")).extensionProviders ?? [];
    const names = providers.map(({ name }) => name);
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
  for (const { name, envoyExtAuthzHttp, envoyExtAuthzGrpc } of meshConfigOf(all).extensionProviders ?? []) {
    const { service, port } = (envoyExtAuthzHttp ?? envoyExtAuthzGrpc)!;
    const found = mesh.servicesByHost.get(providerHost(service));
    if (found !== undefined && found.spec.ports.some((each) => each.port === port)) continue;
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
