/** Gateway: which ports and hosts a gateway workload listens on. Field list of Istio 1.25. */
import {
  boolean,
  enumeration,
  integer,
  list,
  map,
  notYet,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { gatewayHost, labelKey, labelValue, nonEmpty } from "../schema/formats.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

const protocol = enumeration(["HTTP", "HTTPS", "HTTP2", "GRPC", "GRPC-WEB", "TCP", "TLS", "MONGO", "REDIS", "MYSQL"], {
  ignoreCase: true,
  notImplemented: ["HTTPS", "HTTP2", "GRPC", "GRPC-WEB", "TCP", "TLS", "MONGO", "REDIS", "MYSQL"],
});

const tlsVersion = enumeration(["TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"]);

const serverTls = object({
  httpsRedirect: notYet(boolean(), "Answer plain HTTP with a redirect to HTTPS."),
  mode: notYet(
    enumeration(["PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"]),
    "How TLS is ended here.",
  ),
  serverCertificate: notYet(string(), "File with the certificate chain."),
  privateKey: notYet(string(), "File with the private key."),
  caCertificates: notYet(string(), "File with the authorities that clients are checked against."),
  caCrl: notYet(string(), "File with revoked client certificates."),
  credentialName: notYet(string(), "Secret that holds certificate and key."),
  credentialNames: notYet(list(string()), "Secrets that hold certificates and keys (after Istio 1.25)."),
  subjectAltNames: notYet(list(string()), "Names that a client certificate may carry."),
  verifyCertificateSpki: notYet(list(string()), "Accepted hashes of the public key of client certificates."),
  verifyCertificateHash: notYet(list(string()), "Accepted hashes of client certificates."),
  minProtocolVersion: notYet(tlsVersion, "Oldest TLS version."),
  maxProtocolVersion: notYet(tlsVersion, "Newest TLS version."),
  cipherSuites: notYet(list(string()), "Cipher suites up to TLS 1.2."),
  tlsCertificates: notYet(
    list(
      object({
        serverCertificate: notYet(string(), "File with the certificate chain."),
        privateKey: notYet(string(), "File with the private key."),
        caCertificates: notYet(string(), "File with the authorities that clients are checked against."),
      }),
    ),
    "Several certificates from files (after Istio 1.25).",
  ),
  caCertCredentialName: notYet(string(), "Secret with the authorities for clients (after Istio 1.25)."),
});

const serverFields = {
  port: required(
    object({
      number: required(integer({ minimum: 1, maximum: 65_535 }), "Port of the gateway Service."),
      protocol: required(protocol, "Protocol spoken on the port."),
      name: required(string(nonEmpty), "Name of the port, unique in the Gateway."),
      targetPort: notYet(integer({ minimum: 1, maximum: 65_535 }), "Not used; the Service says it."),
    }),
    "The port to listen on.",
  ),
  bind: notYet(string(), "Address to listen on."),
  hosts: required(list(string(gatewayHost), { minItems: 1 }), "Hosts served, `*` for all."),
  tls: notYet(serverTls, "TLS settings of the server."),
  defaultEndpoint: notYet(string(), "Where traffic goes when no route matches."),
  name: notYet(string(), "Name of the server, for statistics."),
} as const;

const gatewayFields = {
  selector: optional(map(string(labelValue), labelKey), "Labels of the gateway pods; all workloads when empty."),
  servers: required(list(object(serverFields), { minItems: 1 }), "What the gateway listens on."),
} as const;

function portNamesDiffer(spec: ObjectValue<typeof gatewayFields>, report: Report): void {
  const seen = new Map<string, number>();
  spec.servers.forEach((server, index) => {
    const first = seen.get(server.port.name);
    if (first !== undefined) {
      report({
        path: ["servers", index, "port", "name"],
        message: `the port name "${server.port.name}" is used by servers[${first}] already`,
        suggestion: "Give each server of a Gateway its own port name.",
      });
    }
    seen.set(server.port.name, first ?? index);
  });
}

function tlsWhereNeeded(spec: ObjectValue<typeof gatewayFields>, report: Report): void {
  spec.servers.forEach((server, index) => {
    const isTls = server.port.protocol === "HTTPS" || server.port.protocol === "TLS";
    if (isTls && server.tls === undefined) {
      report({
        path: ["servers", index],
        message: `the server speaks ${server.port.protocol} and has no tls settings`,
        suggestion: 'Add "tls" with a mode and a credentialName, or use protocol HTTP.',
      });
    }
  });
}

export const gateway = defineKind({
  kind: "Gateway",
  plural: "gateways",
  shortNames: ["gw"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  unknownField: "error",
  description: "Ports and hosts that a gateway workload listens on.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(object(gatewayFields, { rules: [portNamesDiffer, tlsWhereNeeded] }), "What the gateway serves."),
    },
    { unread: ["status"] },
  ),
});
