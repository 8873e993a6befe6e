/** Gateway: which ports and hosts a gateway workload listens on. Field list of Istio 1.31. */
import {
  enumeration,
  integer,
  list,
  map,
  narrowing,
  notYet,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import { isIP } from "node:net";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { gatewayHost, nonEmpty, quote } from "../schema/formats.ts";
import { gatewayLabelKey, gatewayLabelValue } from "../schema/label-formats.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { serverTls } from "./gateway-tls.ts";
import { labelNamedMetadata } from "./metadata.ts";

const protocol = enumeration(["HTTP", "HTTPS", "HTTP2", "GRPC", "GRPC-WEB", "TCP", "TLS", "MONGO", "REDIS", "MYSQL"], {
  ignoreCase: true,
  notImplemented: ["MONGO", "REDIS", "MYSQL"],
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
  bind: narrowing(string(), "Address to listen on.", "the server would listen on every address of the pod", [
    "",
    "0.0.0.0",
    "::",
  ]),
  hosts: required(list(string(gatewayHost), { minItems: 1 }), "Hosts served, `*` for all."),
  tls: optional(serverTls, "TLS settings of the server."),
  defaultEndpoint: notYet(string(), "Where traffic goes when no route matches."),
  name: notYet(string(), "Name of the server, for statistics."),
} as const;

const gatewayFields = {
  selector: optional(
    map(string(gatewayLabelValue), gatewayLabelKey),
    "Labels of the gateway pods; all workloads when empty.",
  ),
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

const plainHttp: ReadonlySet<string> = new Set(["HTTP", "HTTP2", "GRPC", "GRPC-WEB"]);

/** Settings that may stand at a server of plain HTTP: those without a certificate, as for `httpsRedirect`. */
function endsNothing(tls: NonNullable<ObjectValue<typeof serverFields>["tls"]>): boolean {
  const { mode = "PASSTHROUGH", serverCertificate, privateKey, caCertificates } = tls;
  const isPassedOn = mode === "PASSTHROUGH" || mode === "AUTO_PASSTHROUGH";
  return isPassedOn && [serverCertificate, privateKey, caCertificates].every((each) => each === undefined);
}

function tlsWhereNeeded(spec: ObjectValue<typeof gatewayFields>, report: Report): void {
  spec.servers.forEach((server, index) => {
    const { protocol: spoken, targetPort = 0 } = server.port;
    if ((server.bind ?? "") !== "" && !server.bind!.startsWith("unix://") && isIP(server.bind!) === 0) {
      report({ path: ["servers", index, "bind"], message: `${quote(server.bind!)} is not an IP address` });
    }
    const isTls = spoken === "HTTPS" || spoken === "TLS";
    if (targetPort > 0) {
      const path = ["servers", index, "port", "targetPort"];
      report({ path, message: "a Gateway's server has no target port: the Service of the gateway says it" });
    }
    if (!plainHttp.has(spoken) && server.tls?.httpsRedirect === true) {
      report({
        code: "IST0133",
        path: ["servers", index, "tls", "httpsRedirect"],
        message: `a server that speaks ${spoken} has nothing to redirect`,
        suggestion: "Set it at the server that speaks plain HTTP.",
      });
    }
    if (!isTls && server.tls !== undefined && !(plainHttp.has(spoken) && endsNothing(server.tls))) {
      report({
        path: ["servers", index, "tls", ...(server.tls.mode === undefined ? [] : ["mode"])],
        message: `a server that speaks ${spoken} has no TLS`,
        suggestion: "Use protocol HTTPS to end TLS for HTTP, or TLS for other protocols.",
      });
    }
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
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Ports and hosts that a gateway workload listens on.",
  schema: object(
    {
      metadata: required(labelNamedMetadata, "Metadata."),
      spec: required(object(gatewayFields, { rules: [portNamesDiffer, tlsWhereNeeded] }), "What the gateway serves."),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
