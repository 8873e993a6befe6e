/**
 * IST0109: two VirtualServices for sidecars claim one host. Sidecars follow only one of them; at gateways several may share
 * a host, so those are left alone.
 */
import type { VirtualService } from "../resource.ts";
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
    for (const [host, claim] of claims) {
      const names = claim.map(({ resource: { metadata } }) => `${metadata.namespace}/${metadata.name}`);
      if (new Set(names).size < 2) continue;
      for (const { resource, index } of claim) {
        yield {
          code: "IST0109",
          resource,
          path: ["spec", "hosts", index],
          message: `the host "${host}" is claimed by several VirtualServices: ${[...new Set(names)].join(", ")}`,
          suggestion: "Put the routes into one VirtualService.",
        };
      }
    }
  },
};
