// From what proxies refused back to the user's resources: a refusal is shown where its cause was written.
import { type Finding, findingCodes, keyText, type Place, type ResourceKey } from "@tulle/config";
import type { ResourceRejection } from "@tulle/config/api";
import type { RejectedResource, ResourceTypeName } from "@tulle/xds";
import { gatewayRouteName, listenerName } from "../names/resource-names.ts";
import type { ProxyView, ScopedService } from "../scope/proxy-view.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { type ConnectedProxy, proxyId } from "./pusher.ts";

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

/**
 * What proxies refuse now, told at the resources that it was made of; one finding for all proxies that say the same.
 */
export function refusalFindings(
  connected: readonly ConnectedProxy[],
  placeOf: (key: ResourceKey) => Place | undefined,
): readonly Finding[] {
  const refusals = new Map<
    string,
    { readonly key: ResourceKey | undefined; what: string; readonly proxies: string[] }
  >();
  for (const { proxy, connection, view } of connected) {
    if (view === undefined) continue;
    for (const { type, rejected } of connection.status().values()) {
      for (const { name, message } of rejected) {
        const what = `${type} ${name}: ${message.trim()}`;
        const keys = sources(type, name, view);
        for (const key of keys.length === 0 ? [undefined] : keys) {
          const id = `${key === undefined ? "" : keyText(key)} ${what}`;
          const known = refusals.get(id);
          if (known === undefined) refusals.set(id, { key, what, proxies: [proxyId(proxy)] });
          else known.proxies.push(proxyId(proxy));
        }
      }
    }
  }
  return [...refusals.values()].map(({ key, what, proxies }) => refusalFinding(key, what, proxies, placeOf));
}

function refusalFinding(
  resource: ResourceKey | undefined,
  what: string,
  [first, ...others]: readonly string[],
  placeOf: (key: ResourceKey) => Place | undefined,
): Finding {
  const who = others.length === 0 ? first : `${first} and ${others.length} more`;
  const place = resource === undefined ? undefined : placeOf(resource);
  return {
    code: "TUL0011",
    severity: findingCodes.TUL0011.severity,
    message: `${who} refused ${what}`,
    ...(resource === undefined ? {} : { resource }),
    ...(place === undefined ? {} : { place }),
  };
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
    const service = view.clusters.value.services.find(({ hostname }) => resource.endsWith(`|${hostname}`));
    return service === undefined ? [] : [serviceKey(service), ...ruleOf(service)];
  }
  const policies = (view.own.value.security?.policies ?? []).map((policy) => named("AuthorizationPolicy", policy));
  if (view.type === "sidecar")
    return type === "RDS" ? view.routes.value.virtualServices.map(virtualServiceKey) : policies;
  const ports = view.routes.value.ports.filter(
    ({ targetPort, routeName = gatewayRouteName(targetPort) }) =>
      resource === listenerName("0.0.0.0", targetPort) || resource === routeName,
  );
  const gateways = new Set(ports.flatMap((port) => port.servers.map((server) => server.gateway)));
  const keys = [...gateways].map((gateway) => {
    const [namespace = "", gatewayName = ""] = gateway.split("/");
    return { kind: "Gateway", namespace, name: gatewayName };
  });
  if (type !== "RDS") return [...keys, ...policies];
  const bound = view.routes.value.virtualServices.filter((each) => each.gateways.some((name) => gateways.has(name)));
  return [...keys, ...bound.map(virtualServiceKey)];
}

function virtualServiceKey(virtualService: MeshVirtualService): ResourceKey {
  return named("VirtualService", virtualService);
}

function serviceKey(service: ScopedService): ResourceKey {
  const { namespace, entry } = service;
  return entry === undefined ? named("Service", service) : named("ServiceEntry", { namespace, name: entry.resource });
}

function ruleOf({ rule }: ScopedService): readonly ResourceKey[] {
  return rule === undefined ? [] : [named("DestinationRule", rule)];
}

function named(kind: string, { namespace, name }: { readonly namespace: string; readonly name: string }): ResourceKey {
  return { kind, namespace, name };
}
