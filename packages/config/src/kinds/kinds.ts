/**
 * The one table of kinds. A new kind is a file beside this one and a row here; types, validation, JSON Schema, the command
 * line and the HTTP API follow from it.
 */
import { authorizationPolicy } from "./authorization-policy.ts";
import { browserLogin } from "./browser-login.ts";
import { configMap } from "./config-map.ts";
import { deployment } from "./deployment.ts";
import { destinationRule } from "./destination-rule.ts";
import { endpointSlice } from "./endpoint-slice.ts";
import { gateway } from "./gateway.ts";
import { namespace } from "./namespace.ts";
import { peerAuthentication } from "./peer-authentication.ts";
import { pod } from "./pod.ts";
import { requestAuthentication } from "./request-authentication.ts";
import { secret } from "./secret.ts";
import { service } from "./service.ts";
import { serviceAccount } from "./service-account.ts";
import { virtualService } from "./virtual-service.ts";

export const kindDefinitions = {
  Namespace: namespace,
  ServiceAccount: serviceAccount,
  Service: service,
  EndpointSlice: endpointSlice,
  Pod: pod,
  Deployment: deployment,
  Gateway: gateway,
  VirtualService: virtualService,
  DestinationRule: destinationRule,
  AuthorizationPolicy: authorizationPolicy,
  RequestAuthentication: requestAuthentication,
  PeerAuthentication: peerAuthentication,
  Secret: secret,
  BrowserLogin: browserLogin,
  ConfigMap: configMap,
} as const;

export type Kind = keyof typeof kindDefinitions;

export const kinds = Object.keys(kindDefinitions) as readonly Kind[];

export function isKind(name: string): name is Kind {
  return Object.hasOwn(kindDefinitions, name);
}

/** The kind that a person means by `name`: kind, plural or short name, in any case (`vs`, `virtualservices`, `VirtualService`). */
export function findKind(name: string): Kind | undefined {
  const wanted = name.toLowerCase();
  return kinds.find((kind) => {
    const { plural, shortNames } = kindDefinitions[kind];
    return kind.toLowerCase() === wanted || plural === wanted || shortNames.some((short) => short === wanted);
  });
}
