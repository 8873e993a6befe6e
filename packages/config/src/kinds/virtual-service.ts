/** VirtualService: how requests for some hosts are routed. Field list of Istio 1.31. */
import {
  defaulted,
  deprecated,
  integer,
  list,
  map,
  narrowing,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import { isIP } from "node:net";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { dnsLabel, exportedNamespace, gatewayReference, isClaim, serverNameHost } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { hostCovers, hostsOverlap } from "../rules/resolve-host.ts";
import { exportsFit } from "./exported-namespaces.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { ipBlock } from "./authorization-formats.ts";
import { destination, httpRoute } from "./http-route.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

const port = integer({ minimum: 1, maximum: 65_535 });
const labels = map(string(labelValue), labelKey);

const layer4Destinations = list(
  object({
    destination: required(destination, "Where connections go."),
    weight: optional(
      integer({ minimum: 0, maximum: 2_147_483_647 }),
      "Share of the connections, in relation to the other destinations.",
    ),
  }),
  { minItems: 1 },
);

const layer4Match = {
  destinationSubnets: narrowing(
    list(string(ipBlock)),
    "Destination addresses.",
    "the route would take connections to every address",
    [[]],
  ),
  port: optional(port, "Port that the client asked for."),
  sourceLabels: optional(labels, "Labels of the client."),
  gateways: optional(
    list(string(gatewayReference)),
    "Gateways that the match is for; all of the VirtualService when missing.",
  ),
  sourceNamespace: optional(string(dnsLabel), "Namespace of the client."),
} as const;

/** Envoy adds weights up in 32 bits, and takes no list of which nothing is ever chosen. */
const maxTotalWeight = 4_294_967_295;

function weightsAddUp({ route }: { readonly route: readonly { readonly weight?: number }[] }, report: Report): void {
  if (route.length < 2) return;
  const total = route.reduce((sum, { weight = 0 }) => sum + weight, 0);
  if (total === 0 || total > maxTotalWeight) {
    report({
      path: ["route"],
      message: `the ${route.length} destinations have a total weight of ${total}`,
      suggestion: "Give the destinations weights, for example 90 and 10.",
    });
  }
}

const tlsRouteFields = {
  match: required(
    list(
      object({ sniHosts: required(list(string(serverNameHost), { minItems: 1 }), "Server names."), ...layer4Match }),
      {
        minItems: 1,
      },
    ),
    "Conditions.",
  ),
  route: required(layer4Destinations, "Where connections go."),
} as const;

const tcpRouteFields = {
  match: optional(
    list(
      object({
        ...layer4Match,
        sourceSubnet: deprecated(
          narrowing(string(), "Client address.", "the route would hold for every client", [""]),
          "sourceLabels",
        ),
      }),
    ),
    "Conditions.",
  ),
  route: required(layer4Destinations, "Where connections go."),
} as const;

const tlsRoute = object(tlsRouteFields, { rules: [weightsAddUp] });
const tcpRoute = object(tcpRouteFields, { rules: [weightsAddUp] });

const virtualServiceFields = {
  hosts: defaulted(list(string(serverNameHost)), [], "Hosts that the routes are for."),
  gateways: optional(
    list(string(gatewayReference)),
    "Gateways that carry the routes; `mesh` stands for all sidecars, and is meant when the list is missing.",
  ),
  http: optional(list(httpRoute), "Routes of HTTP requests; the first that matches is taken."),
  tls: optional(
    list(tlsRoute),
    "Routes of TLS connections that are passed through; the host of a tunnel stands for the server name.",
  ),
  tcp: optional(list(tcpRoute), "Routes of TCP connections."),
  exportTo: optional(list(string(exportedNamespace)), "Namespaces that see the routes; all when missing."),
} as const;

function hasRoutes(spec: ObjectValue<typeof virtualServiceFields>, report: Report): void {
  if ((spec.http?.length ?? 0) + (spec.tls?.length ?? 0) + (spec.tcp?.length ?? 0) > 0) return;
  report({ message: "the VirtualService has no routes", suggestion: 'Add "http" with at least one route.' });
}

/** Hosts that are compared with each other; of more, a name that is there twice is found, and no overlap. */
const mostCompared = 1000;

function hostsFit(spec: ObjectValue<typeof virtualServiceFields>, report: Report): void {
  if (spec.hosts.length === 0) {
    for (const name of ["gateways", "tls", "tcp"] as const) {
      if ((spec[name] ?? []).length === 0) continue;
      report({ path: [name], message: `a VirtualService without hosts is a delegate and may have no "${name}"` });
    }
    report({
      code: "TUL0001",
      path: ["hosts"],
      message: "a VirtualService without hosts is a delegate; delegates are not implemented yet, so it has no effect",
      suggestion: "Name at least one host.",
    });
  }
  const isForMesh = spec.gateways === undefined || spec.gateways.length === 0 || spec.gateways.includes("mesh");
  const compared = spec.hosts.slice(0, mostCompared);
  const seen = new Set<string>();
  spec.hosts.forEach((host, index) => {
    const overlaps = (each: string, place: number): boolean => place < index && hostsOverlap(each, host);
    const other = index < mostCompared ? compared.find(overlaps) : seen.has(host) ? host : undefined;
    seen.add(host);
    // Istio looks for overlaps only where each host is possible by itself.
    if (other !== undefined && !(host === "*" && isForMesh)) {
      const message = other === host ? `the host "${host}" is listed twice` : `the host "${host}" overlaps "${other}"`;
      report({ path: ["hosts", index], message });
    }
    if (host === "*" && isForMesh) {
      report({
        path: ["hosts", index],
        message: 'the host "*" is only possible at gateways, and this VirtualService is for the mesh too',
        suggestion: "Name the hosts, or bind the VirtualService to a gateway.",
      });
    }
  });
}

/** A server name is one of the hosts, or falls under one that is a wildcard. */
function serverNamesAreOfHosts(spec: ObjectValue<typeof virtualServiceFields>, report: Report): void {
  const names = new Set(spec.hosts);
  const wildcards = [...names].filter((host) => host.startsWith("*"));
  if (wildcards.length > mostCompared) return;
  spec.tls?.forEach(({ match }, index) => {
    match.forEach(({ sniHosts }, matchIndex) => {
      sniHosts.forEach((name, nameIndex) => {
        if (isIP(name) > 0 || names.has(name) || wildcards.some((host) => hostCovers(host, name))) return;
        const path = ["tls", index, "match", matchIndex, "sniHosts", nameIndex];
        report({ path, message: `the server name "${name}" is none of the hosts`, suggestion: 'Add it to "hosts".' });
      });
    });
  });
}

/** Tokens of the mesh's own requests are not looked at before routes are. */
function claimsAtGateways(spec: ObjectValue<typeof virtualServiceFields>, report: Report): void {
  if ((spec.gateways ?? []).length > 0 && !spec.gateways!.includes("mesh")) return;
  spec.http?.forEach(({ match = [] }, index) => {
    match.forEach((each, matchIndex) => {
      for (const field of ["headers", "withoutHeaders"] as const) {
        for (const name of Object.keys(each[field] ?? {})) {
          if (!isClaim(name)) continue;
          const path = ["http", index, "match", matchIndex, field, name];
          report({
            path,
            message: "routes by claims of tokens are possible at gateways alone",
            suggestion: 'Name a gateway in "gateways", and not "mesh".',
          });
        }
      }
    });
  });
}

export const virtualService = defineKind({
  kind: "VirtualService",
  plural: "virtualservices",
  shortNames: ["vs"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "How requests for some hosts are routed.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(
        object(virtualServiceFields, {
          rules: [hasRoutes, hostsFit, serverNamesAreOfHosts, claimsAtGateways, exportsFit],
        }),
        "The routes.",
      ),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
