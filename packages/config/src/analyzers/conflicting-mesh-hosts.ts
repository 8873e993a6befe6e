/**
 * IST0109: two VirtualServices for sidecars claim one host. Sidecars follow only one of them; at gateways several may
 * share a host, so those are left alone.
 */
import { exportedTo, exportsOverlap } from "../rules/export-to.ts";
import { meshConfigOf } from "../mesh-config/mesh-config.ts";
import type { VirtualService } from "../kinds/resource.ts";
import type { Analyzer } from "./analyzer.ts";

export const conflictingMeshHosts: Analyzer = {
  name: "conflicting-mesh-hosts",
  codes: ["IST0109"],
  *run(mesh) {
    const claims = new Map<string, { readonly resource: VirtualService; readonly index: number }[]>();
    for (const resource of mesh.list("VirtualService")) {
      const { hosts, gateways } = resource.spec;
      if (gateways !== undefined && gateways.length > 0 && !gateways.includes("mesh")) continue;
      for (const [index, host] of hosts.entries()) {
        const full = mesh.resolve(host, resource.metadata.namespace);
        const claim = claims.get(full) ?? [];
        claim.push({ resource, index });
        claims.set(full, claim);
      }
    }
    const meshConfig = meshConfigOf(mesh.list("ConfigMap"));
    const exported = ({ metadata, spec }: VirtualService) =>
      exportedTo(spec.exportTo, metadata.namespace, meshConfig.defaultVirtualServiceExportTo);
    for (const [host, claim] of claims) {
      for (const { resource, index } of claim) {
        const rivals = claim.filter((each) => exportsOverlap(exported(each.resource), exported(resource)));
        const names = new Set(rivals.map(({ resource: { metadata } }) => `${metadata.namespace}/${metadata.name}`));
        if (names.size < 2) continue;
        yield {
          code: "IST0109",
          resource,
          path: ["spec", "hosts", index],
          message: `the host "${host}" is claimed by several VirtualServices: ${[...names].join(", ")}`,
          suggestion: "Put the routes into one VirtualService.",
        };
      }
    }
  },
};
