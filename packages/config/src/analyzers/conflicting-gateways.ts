/** IST0145: two Gateways on the same pods claim one host on one port. */
import type { Gateway } from "../resource.ts";
import type { Analyzer } from "./analyzer.ts";

export const conflictingGateways: Analyzer = {
  name: "conflicting-gateways",
  codes: ["IST0145"],
  *run(mesh) {
    const claims = new Map<string, { readonly resource: Gateway; readonly server: number; readonly host: string }[]>();
    for (const resource of mesh.list("Gateway")) {
      const selector = Object.entries(resource.spec.selector ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [server, { port, hosts, bind }] of resource.spec.servers.entries()) {
        for (const host of hosts) {
          const key = JSON.stringify([selector, port.number, bind ?? "", host]);
          const claim = claims.get(key) ?? [];
          claim.push({ resource, server, host });
          claims.set(key, claim);
        }
      }
    }
    for (const claim of claims.values()) {
      const names = new Set(claim.map(({ resource: { metadata } }) => `${metadata.namespace}/${metadata.name}`));
      if (names.size < 2) continue;
      for (const { resource, server, host } of claim) {
        const own = `${resource.metadata.namespace}/${resource.metadata.name}`;
        const others = [...names].filter((name) => name !== own);
        yield {
          code: "IST0145",
          resource,
          path: ["spec", "servers", server],
          message: `host "${host}" on port ${resource.spec.servers[server]!.port.number} is served by the Gateway ${others.join(", ")} already, on the same pods`,
          suggestion: "Keep one of the servers, or give them different hosts.",
        };
      }
    }
  },
};
