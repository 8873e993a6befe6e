/** EndpointSlice: addresses behind a Service, and whether they are ready. */
import { isIP } from "node:net";
import {
  boolean,
  defaulted,
  enumeration,
  integer,
  list,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { quote } from "../schema/formats.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

/** The label that ties an EndpointSlice to its Service. */
export const serviceNameLabel = "kubernetes.io/service-name";

const endpoint = object(
  {
    addresses: required(list(string(), { minItems: 1 }), "Addresses; the first one is used."),
    conditions: optional(
      object({
        ready: optional(boolean(), "Whether it gets new requests; ready when missing."),
        serving: optional(boolean(), "Whether it answers."),
        terminating: optional(boolean(), "Whether it is about to end."),
      }),
      "State.",
    ),
    hostname: optional(string(), "Host name."),
    nodeName: optional(string(), "Node."),
    zone: optional(string(), "Zone."),
    targetRef: optional(
      object(
        {
          kind: optional(string(), "Kind, mostly Pod."),
          name: optional(string(), "Name."),
          namespace: optional(string(), "Namespace."),
          uid: optional(string(), "Unique id."),
        },
        { unread: ["apiVersion", "fieldPath", "resourceVersion"] },
      ),
      "The pod behind the address.",
    ),
  },
  { unread: ["deprecatedTopology", "hints"] },
);

const endpointPort = object({
  name: optional(string(), "Name of the port of the Service."),
  port: optional(integer({ minimum: 1, maximum: 65_535 }), "Port of the addresses."),
  protocol: defaulted(enumeration(["TCP", "UDP", "SCTP"]), "TCP", "Transport protocol."),
  appProtocol: optional(string(), "Protocol."),
});

const endpointSliceFields = {
  metadata: required(subdomainNamedMetadata, "Metadata; the label kubernetes.io/service-name names the Service."),
  addressType: required(enumeration(["IPv4", "IPv6", "FQDN"]), "Kind of address."),
  endpoints: defaulted(list(endpoint), [], "Addresses."),
  ports: defaulted(list(endpointPort), [], "Ports, the same for all addresses."),
} as const;

/** One address that is none, and proxies refuse all endpoints of the Service. */
function addressesFit({ addressType, endpoints }: ObjectValue<typeof endpointSliceFields>, report: Report): void {
  if (addressType === "FQDN") return;
  const version = addressType === "IPv4" ? 4 : 6;
  endpoints.forEach(({ addresses }, index) => {
    addresses.forEach((address, at) => {
      if (isIP(address) === version) return;
      report({
        path: ["endpoints", index, "addresses", at],
        message: `${quote(address)} is not an ${addressType} address`,
      });
    });
  });
}

export const endpointSlice = defineKind({
  kind: "EndpointSlice",
  plural: "endpointslices",
  shortNames: ["eps"],
  apiVersions: ["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"],
  scope: "Namespaced",
  affects: "endpoints",
  writtenBy: "platform",
  unknownField: "warning",
  description: "Addresses behind a Service.",
  schema: object(endpointSliceFields, { rules: [addressesFit] }),
});
