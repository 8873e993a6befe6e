/**
 * The analysis stage: what is wrong among resources that are each fine by themselves. One analyzer a file, all of them in the
 * table below; they only look, and what they find never stops the rest.
 */
import { browserLogins } from "./analyzers/browser-logins.ts";
import { claimRouting } from "./analyzers/claim-routing.ts";
import { conflictingGateways } from "./analyzers/conflicting-gateways.ts";
import { conflictingMeshHosts } from "./analyzers/conflicting-mesh-hosts.ts";
import { connectionPolicies } from "./analyzers/connection-policies.ts";
import { customProviders } from "./analyzers/custom-providers.ts";
import { destinationRuleHosts } from "./analyzers/destination-rule-hosts.ts";
import { destinationRuleTls } from "./analyzers/destination-rule-tls.ts";
import { destinations } from "./analyzers/destinations.ts";
import { gatewayCredentials } from "./analyzers/gateway-credentials.ts";
import { gatewayHosts } from "./analyzers/gateway-hosts.ts";
import { gatewayReferences } from "./analyzers/gateway-references.ts";
import { gatewayWorkloads } from "./analyzers/gateway-workloads.ts";
import { http2Ports } from "./analyzers/http2-ports.ts";
import { jwtAudiences } from "./analyzers/jwt-audiences.ts";
import { localVariables } from "./analyzers/local-variables.ts";
import { localVolumes } from "./analyzers/local-volumes.ts";
import { loopbackProtocols } from "./analyzers/loopback-protocols.ts";
import { missingProxies } from "./analyzers/missing-proxies.ts";
import { namespaceInjection } from "./analyzers/namespace-injection.ts";
import { peerAuthentications } from "./analyzers/peer-authentications.ts";
import { missingAuthority } from "./analyzers/missing-authority.ts";
import { policyWorkloads } from "./analyzers/policy-workloads.ts";
import { policyNamespaces } from "./analyzers/policy-namespaces.ts";
import { portNames } from "./analyzers/port-names.ts";
import { subsetWorkloads } from "./analyzers/subset-workloads.ts";
import { tokenConditions } from "./analyzers/token-conditions.ts";
import { unreachableRules } from "./analyzers/unreachable-rules.ts";
import { AnalyzedMesh } from "./analyzers/analyzer.ts";
import type { AnalyzeOptions, Analyzer, Discovery } from "./analyzers/analyzer.ts";
import { findingCodes } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { formatPath, placeOf } from "./places.ts";
import { keyOf } from "./resource.ts";
import type { MeshResource } from "./resource.ts";

export const analyzers: readonly Analyzer[] = [
  gatewayReferences,
  destinations,
  destinationRuleHosts,
  subsetWorkloads,
  destinationRuleTls,
  gatewayWorkloads,
  gatewayCredentials,
  gatewayHosts,
  conflictingMeshHosts,
  conflictingGateways,
  unreachableRules,
  portNames,
  http2Ports,
  namespaceInjection,
  missingProxies,
  localVariables,
  localVolumes,
  loopbackProtocols,
  policyWorkloads,
  policyNamespaces,
  peerAuthentications,
  missingAuthority,
  tokenConditions,
  connectionPolicies,
  customProviders,
  jwtAudiences,
  claimRouting,
  browserLogins,
];

/** Everything the analyzers say about `resources` as a whole, with places for those that came from files. */
export function analyze(resources: readonly MeshResource[], options: AnalyzeOptions = {}): readonly Finding[] {
  const mesh = new AnalyzedMesh(resources, options);
  return analyzers.flatMap((analyzer) =>
    [...analyzer.run(mesh)]
      .filter(({ resource, code }) => !mesh.isDraft(resource) || referenceCodes.has(code))
      .map(toFinding),
  );
}

/** What refers to something that is not there does so whatever else of the resource is wrong. */
const referenceCodes: ReadonlySet<string> = new Set(["IST0101", "IST0132"]);

function toFinding(discovery: Discovery): Finding {
  const { code, resource, path = [], message, suggestion, severity = findingCodes[code].severity } = discovery;
  const place = placeOf(resource, path);
  return {
    code,
    severity,
    message,
    resource: keyOf(resource),
    ...(path.length === 0 ? {} : { path: formatPath(path) }),
    ...(place === undefined ? {} : { place }),
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}
