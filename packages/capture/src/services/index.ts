// The public face of Services in nodes' kernels; apart from the package's own, since few processes need it.
export { applyServiceRules, removeServiceRules } from "./apply-service-rules.ts";
export { clusterDnsObjects, type ClusterDnsObjects, type ClusterDnsPlaces } from "./cluster-dns-objects.ts";
export * from "./cluster-objects.ts";
export { type RuleTable } from "./rule-table.ts";
export { type Allocation, type AllocatorOptions, parseClusterRanges, ServiceAllocator } from "./service-allocator.ts";
export { serviceNames, type ServiceNamesInput } from "./service-names.ts";
export { ServiceNetwork, type ServiceNetworkOptions, type ServiceSnapshot } from "./service-network.ts";
export { type ServicePort, servicePorts, type ServicePorts, type ServicePortsInput } from "./service-ports.ts";
export { serviceRules, type ServiceRulesInput, serviceTable } from "./service-rules.ts";
