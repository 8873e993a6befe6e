/**
 * The analysis stage: what is wrong among resources that are each fine by themselves. One analyzer a file, all of them
 * in the table below; they only look, and what they find never stops the rest.
 */
import { applicationUsers } from "./application-users.ts";
import { browserLogins } from "./browser-logins.ts";
import { claimRouting } from "./claim-routing.ts";
import { conflictingGateways } from "./conflicting-gateways.ts";
import { conflictingMeshHosts } from "./conflicting-mesh-hosts.ts";
import { connectionPolicies } from "./connection-policies.ts";
import { customProviders } from "./custom-providers.ts";
import { destinationRuleHosts } from "./destination-rule-hosts.ts";
import { destinationRuleTls } from "./destination-rule-tls.ts";
import { destinations } from "./destinations.ts";
import { gatewayCredentials } from "./gateway-credentials.ts";
import { gatewayHosts } from "./gateway-hosts.ts";
import { gatewayReferences } from "./gateway-references.ts";
import { gatewayWorkloads } from "./gateway-workloads.ts";
import { jwtAudiences } from "./jwt-audiences.ts";
import { localVariables } from "./local-variables.ts";
import { localVolumes } from "./local-volumes.ts";
import { loopbackProtocols } from "./loopback-protocols.ts";
import { missingProxies } from "./missing-proxies.ts";
import { namespaceInjection } from "./namespace-injection.ts";
import { peerAuthentications } from "./peer-authentications.ts";
import { missingAuthority } from "./missing-authority.ts";
import { policyWorkloads } from "./policy-workloads.ts";
import { policyNamespaces } from "./policy-namespaces.ts";
import { portNames } from "./port-names.ts";
import { rollouts } from "./rollouts.ts";
import { serviceEntries } from "./service-entries.ts";
import { subsetWorkloads } from "./subset-workloads.ts";
import { telemetries } from "./telemetries.ts";
import { tokenConditions } from "./token-conditions.ts";
import { unkeptServiceFields } from "./unkept-service-fields.ts";
import { unreachableRules } from "./unreachable-rules.ts";
import { AnalyzedMesh } from "./analyzer.ts";
import type { AnalyzeOptions, Analyzer, Discovery } from "./analyzer.ts";
import { findingCodes } from "../findings/finding.ts";
import type { Finding } from "../findings/finding.ts";
import { formatPath, placeOf } from "../findings/places.ts";
import { keyOf } from "../kinds/resource.ts";
import type { MeshResource } from "../kinds/resource.ts";

export const analyzers: readonly Analyzer[] = [
  gatewayReferences,
  destinations,
  destinationRuleHosts,
  serviceEntries,
  subsetWorkloads,
  destinationRuleTls,
  gatewayWorkloads,
  gatewayCredentials,
  gatewayHosts,
  conflictingMeshHosts,
  conflictingGateways,
  unreachableRules,
  portNames,
  namespaceInjection,
  missingProxies,
  applicationUsers,
  localVariables,
  localVolumes,
  loopbackProtocols,
  unkeptServiceFields,
  policyWorkloads,
  telemetries,
  policyNamespaces,
  peerAuthentications,
  missingAuthority,
  tokenConditions,
  connectionPolicies,
  customProviders,
  jwtAudiences,
  claimRouting,
  browserLogins,
  rollouts,
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
