// From what proxies refused back to the user's resources: a refusal is shown where its cause was written.
import type { ResourceKey } from "@tulle/config";
import type { RejectedResource, ResourceTypeName } from "@tulle/xds";
import { gatewayRouteName, listenerName } from "../translate/names.ts";
import type { ProxyView, ScopedService } from "../scope/proxy-view.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { type ConnectedProxy, proxyId } from "./pusher.ts";

export interface ResourceRejection {
  /** `<pod>.<namespace>` */
  readonly proxy: string;
  readonly type: ResourceTypeName;
  /** The xDS resource that the proxy refused. */
  readonly resource: string;
  /** The proxy's own words. */
  readonly message: string;
  readonly at: string;
}

/** The refusals of xDS resources that `key` has a part in. */
export function rejectionsOf(key: ResourceKey, connected: readonly ConnectedProxy[]): readonly ResourceRejection[] {
  return connected.flatMap(({ proxy, connection, view }) =>
    view === undefined
      ? []
      : [...connection.status().values()].flatMap(({ type, rejected }) =>
          rejected
            .filter(({ name }) => sources(type, name, view).some((source) => isSame(source, key)))
            .map((each) => rejection(proxyId(proxy), type, each)),
        ),
  );
}

function rejection(proxy: string, type: ResourceTypeName, rejected: RejectedResource): ResourceRejection {
  const { name: resource, message, atMs } = rejected;
  return { proxy, type, resource, message, at: new Date(atMs).toISOString() };
}

function isSame(one: ResourceKey, other: ResourceKey): boolean {
  return one.kind === other.kind && one.namespace === other.namespace && one.name === other.name;
}

/** The user resources that an xDS resource of a proxy was made of. */
function sources(type: ResourceTypeName, resource: string, view: ProxyView): readonly ResourceKey[] {
  if (type === "CDS" || type === "EDS") {
    const service = view.shared.value.services.find(({ hostname }) => resource.endsWith(`|${hostname}`));
    return service === undefined ? [] : [named("Service", service), ...ruleOf(service)];
  }
  const policies = (view.own.value.security?.policies ?? []).map((policy) => named("AuthorizationPolicy", policy));
  if (view.type === "sidecar")
    return type === "RDS" ? view.shared.value.virtualServices.map(virtualServiceKey) : policies;
  const ports = view.shared.value.ports.filter(
    ({ targetPort, routeName = gatewayRouteName(targetPort) }) =>
      resource === listenerName("0.0.0.0", targetPort) || resource === routeName,
  );
  const gateways = new Set(ports.flatMap((port) => port.servers.map((server) => server.gateway)));
  const keys = [...gateways].map((gateway) => {
    const [namespace = "", gatewayName = ""] = gateway.split("/");
    return { kind: "Gateway", namespace, name: gatewayName };
  });
  if (type !== "RDS") return [...keys, ...policies];
  const bound = view.shared.value.virtualServices.filter((each) => each.gateways.some((name) => gateways.has(name)));
  return [...keys, ...bound.map(virtualServiceKey)];
}

function virtualServiceKey(virtualService: MeshVirtualService): ResourceKey {
  return named("VirtualService", virtualService);
}

function ruleOf({ rule }: ScopedService): readonly ResourceKey[] {
  return rule === undefined ? [] : [named("DestinationRule", rule)];
}

function named(kind: string, { namespace, name }: { readonly namespace: string; readonly name: string }): ResourceKey {
  return { kind, namespace, name };
}
