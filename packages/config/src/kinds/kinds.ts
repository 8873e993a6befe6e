/**
 * The one table of kinds. A new kind is a file beside this one and a row here; types, validation, JSON Schema, the
 * command line and the HTTP API follow from it.
 */
import { authorizationPolicy } from "./authorization-policy.ts";
import { browserLogin } from "./browser-login.ts";
import { configMap } from "./config-map.ts";
import { deployment } from "./deployment.ts";
import { destinationRule } from "./destination-rule.ts";
import { endpointSlice } from "./endpoint-slice.ts";
import { gateway } from "./gateway.ts";
import { namespace } from "./namespace.ts";
import { node } from "./node.ts";
import { peerAuthentication } from "./peer-authentication.ts";
import { pod } from "./pod.ts";
import { requestAuthentication } from "./request-authentication.ts";
import { rollout } from "./rollout.ts";
import { secret } from "./secret.ts";
import { service } from "./service.ts";
import { serviceAccount } from "./service-account.ts";
import { serviceEntry } from "./service-entry.ts";
import { telemetry } from "./telemetry.ts";
import { virtualService } from "./virtual-service.ts";
import { workloadEntry } from "./workload-entry.ts";
import { workloadGroup } from "./workload-group.ts";

/**
 * In the order in which they are applied, so that nothing refers to what is not there yet: traffic to a subset, for
 * one, begins after the DestinationRule that names it, and a workload after the policies that guard it. Deletion goes
 * the other way.
 */
export const kindDefinitions = {
  Namespace: namespace,
  Node: node,
  ServiceAccount: serviceAccount,
  Service: service,
  ConfigMap: configMap,
  Secret: secret,
  PeerAuthentication: peerAuthentication,
  RequestAuthentication: requestAuthentication,
  AuthorizationPolicy: authorizationPolicy,
  Telemetry: telemetry,
  Deployment: deployment,
  Pod: pod,
  EndpointSlice: endpointSlice,
  WorkloadGroup: workloadGroup,
  WorkloadEntry: workloadEntry,
  ServiceEntry: serviceEntry,
  DestinationRule: destinationRule,
  Gateway: gateway,
  BrowserLogin: browserLogin,
  VirtualService: virtualService,
  Rollout: rollout,
} as const;

export type Kind = keyof typeof kindDefinitions;

export const kinds = Object.keys(kindDefinitions) as readonly Kind[];

export function isKind(name: string): name is Kind {
  return Object.hasOwn(kindDefinitions, name);
}

/**
 * The kind that a person means by `name`: kind, plural or short name, in any case (`vs`, `virtualservices`,
 * `VirtualService`).
 */
export function findKind(name: string): Kind | undefined {
  const wanted = name.toLowerCase();
  return kinds.find((kind) => {
    const { plural, shortNames } = kindDefinitions[kind];
    return kind.toLowerCase() === wanted || plural === wanted || shortNames.some((short) => short === wanted);
  });
}
