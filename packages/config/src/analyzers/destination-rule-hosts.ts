/**
 * IST0101: a DestinationRule is about a service that exists. Only a warning, unlike a route's destination: a rule
 * without its service does nothing, but it breaks nothing either.
 */
import type { Analyzer } from "./analyzer.ts";
import { suggestHost } from "./destinations.ts";

export const destinationRuleHosts: Analyzer = {
  name: "destination-rule-hosts",
  codes: ["IST0101"],
  *run(mesh) {
    for (const resource of mesh.list("DestinationRule")) {
      const { host } = resource.spec;
      const { namespace } = resource.metadata;
      const name = mesh.resolve(host, namespace);
      if (host.includes("*") || mesh.servicesByHost.has(name) || mesh.entriesByHost.has(name)) continue;
      yield {
        code: "IST0101",
        severity: "warning",
        resource,
        path: ["spec", "host"],
        message: `host "${host}" not found`,
        suggestion: suggestHost(mesh, host, namespace),
      };
    }
  },
};
