// A ClusterLoadAssignment into the descriptions that a host set is updated with (config.endpoint.v3).
import { isIP } from "node:net";
import type { Address } from "@tulle/xds/envoy/config/core/v3/address_pb";
import { HealthStatus } from "@tulle/xds/envoy/config/core/v3/health_check_pb";
import type { ClusterLoadAssignment } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import type {
  Endpoint_HealthCheckConfig,
  LbEndpoint,
  LocalityLbEndpoints,
} from "@tulle/xds/envoy/config/endpoint/v3/endpoint_components_pb";
import type { EndpointCheck, HostAddress } from "../cluster/cluster.ts";
import type { NamedEndpoint } from "../cluster/dns-endpoints.ts";
import type { EndpointDescription } from "../cluster/host-set.ts";
import { overprovisioningPercent } from "../cluster/priority-shares.ts";
import { checkFields } from "../fields/check-fields.ts";
import { type Compiled, Place, Problems, compiled } from "../fields/problems.ts";
import { clusterLoadAssignmentMessage } from "./cluster-fields.ts";

export interface EndpointOptions {
  /** common_lb_config.locality_weighted_lb_config: a locality's weight is shared by its hosts. */
  readonly usesLocalityWeights?: boolean;
}

/** LocalityLbEndpoints.priority, as Envoy bounds it. */
const maxPriority = 128;

/** Endpoints whose addresses must be IPs or paths: STATIC and EDS clusters. */
export function compileEndpoints(
  message: ClusterLoadAssignment,
  options: EndpointOptions = {},
): Compiled<readonly EndpointDescription[]> {
  const problems = new Problems();
  return compiled(buildEndpoints(message, options, Place.root, problems), problems);
}

export function buildEndpoints(
  message: ClusterLoadAssignment,
  options: EndpointOptions,
  place: Place,
  problems: Problems,
): readonly EndpointDescription[] {
  const endpoints: EndpointDescription[] = [];
  for (const placed of eachEndpoint(message, options, place, problems)) {
    const address = compileAddress(addressOf(placed, problems), endpointAddress(placed.at), problems);
    if (address !== undefined) endpoints.push({ address, ...attributes(placed, problems) });
  }
  return endpoints;
}

/** Endpoints of DNS clusters, whose addresses are names. */
export function buildNamedEndpoints(message: ClusterLoadAssignment, place: Place, problems: Problems): NamedEndpoint[] {
  const endpoints: NamedEndpoint[] = [];
  for (const placed of eachEndpoint(message, {}, place, problems)) {
    const socket = socketAddress(addressOf(placed, problems), endpointAddress(placed.at), problems);
    if (socket === undefined) continue;
    const described = attributes(placed, problems);
    const hostname = described.hostname === "" ? socket.name : described.hostname;
    endpoints.push({ ...described, hostname, dnsName: socket.name, port: socket.port });
  }
  return endpoints;
}

interface PlacedEndpoint {
  readonly endpoint: LbEndpoint;
  readonly scale: number;
  readonly priority: number;
  readonly zone: string;
  readonly at: Place;
}

function* eachEndpoint(
  message: ClusterLoadAssignment,
  options: EndpointOptions,
  place: Place,
  problems: Problems,
): Generator<PlacedEndpoint> {
  checkFields(clusterLoadAssignmentMessage, message, place, problems);
  const factor = message.policy?.overprovisioningFactor;
  // It counts where there are several priorities, and control planes send it always.
  if (factor !== undefined && factor !== overprovisioningPercent)
    problems.warning(
      place.field("policy").field("overprovisioning_factor"),
      `ignored: ${overprovisioningPercent} holds`,
    );
  for (const [index, locality] of message.endpoints.entries()) {
    const at = place.field("endpoints", index);
    if (locality.priority > maxPriority)
      problems.error(at.field("priority"), `value must be less than or equal to ${maxPriority}`);
    const source = locality.lbConfig;
    const lbEndpoints = source.case === "loadBalancerEndpoints" ? source.value.lbEndpoints : locality.lbEndpoints;
    if (source.case === "ledsClusterLocalityConfig")
      problems.error(at, "leds_cluster_locality_config is not supported");
    const scale = options.usesLocalityWeights === true ? localityScale(locality, lbEndpoints) : 1;
    if (scale === 0) continue;
    for (const [position, endpoint] of lbEndpoints.entries()) {
      const of = { priority: locality.priority, zone: locality.locality?.zone ?? "" };
      yield { endpoint, scale, ...of, at: at.field("lb_endpoints", position) };
    }
  }
}

/**
 * Factor on each host's weight so that the weights of a locality add up to the locality's; 0 takes it out, as in Envoy.
 */
function localityScale(locality: LocalityLbEndpoints, endpoints: readonly LbEndpoint[]): number {
  const sum = endpoints.reduce((total, endpoint) => total + weightOf(endpoint), 0);
  return sum === 0 ? 0 : (locality.loadBalancingWeight ?? 0) / sum;
}

function weightOf(endpoint: LbEndpoint): number {
  return Math.max(1, endpoint.loadBalancingWeight ?? 1);
}

const unhealthy: ReadonlySet<number> = new Set([HealthStatus.UNHEALTHY, HealthStatus.DRAINING, HealthStatus.TIMEOUT]);

function attributes(
  { endpoint, scale, priority, zone, at }: PlacedEndpoint,
  problems: Problems,
): Omit<EndpointDescription, "address"> {
  const inner = endpoint.hostIdentifier.case === "endpoint" ? endpoint.hostIdentifier.value : undefined;
  return {
    hostname: inner?.hostname ?? "",
    weight: weightOf(endpoint) * scale,
    metadata: endpoint.metadata?.filterMetadata ?? {},
    healthy: !unhealthy.has(endpoint.healthStatus),
    degraded: endpoint.healthStatus === HealthStatus.DEGRADED,
    priority,
    zone,
    check: endpointCheck(inner?.healthCheckConfig, at, problems),
  };
}

/** Undefined where it says nothing. */
function endpointCheck(
  config: Endpoint_HealthCheckConfig | undefined,
  endpointPlace: Place,
  problems: Problems,
): EndpointCheck | undefined {
  if (config === undefined) return undefined;
  const { portValue: port, hostname, address, disableActiveHealthCheck: isDisabled } = config;
  const place = endpointPlace.field("endpoint").field("health_check_config");
  if (port > 65_535) problems.error(place.field("port_value"), "value must be less than or equal to 65535");
  const compiledAddress = address && compileAddress(address, place.field("address"), problems);
  return { address: compiledAddress, port, hostname, isDisabled };
}

function endpointAddress(place: Place): Place {
  return place.field("endpoint").field("address");
}

function addressOf({ endpoint, at }: PlacedEndpoint, problems: Problems): Address | undefined {
  const identifier = endpoint.hostIdentifier;
  if (identifier.case === "endpoint" && identifier.value.address !== undefined) return identifier.value.address;
  problems.error(endpointAddress(at), "value is required");
  return undefined;
}

function socketAddress(
  message: Address | undefined,
  place: Place,
  problems: Problems,
): { readonly name: string; readonly port: number } | undefined {
  const address = message?.address;
  if (address === undefined) return undefined;
  if (address.case !== "socketAddress") {
    problems.error(place, "a socket_address is required");
    return undefined;
  }
  const port = address.value.portSpecifier;
  if (port.case !== "portValue" || port.value < 1 || port.value > 65_535) {
    problems.error(place.field("socket_address"), "a port_value from 1 to 65535 is required");
    return undefined;
  }
  return { name: address.value.address, port: port.value };
}

function compileAddress(message: Address | undefined, place: Place, problems: Problems): HostAddress | undefined {
  const address = message?.address;
  if (address?.case === "pipe") return { type: "pipe", path: address.value.path };
  const socket = socketAddress(message, place, problems);
  if (socket === undefined) return undefined;
  if (isIP(socket.name) === 0) {
    const advice = "Consider setting resolver_name or setting cluster type to 'STRICT_DNS' or 'LOGICAL_DNS'";
    problems.error(place, `malformed IP address: ${socket.name}. ${advice}`);
    return undefined;
  }
  return { type: "ip", ip: socket.name, port: socket.port };
}
