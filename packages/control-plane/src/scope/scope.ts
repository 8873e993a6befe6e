// The stage `scope`: (snapshot, proxy) → ProxyView. Pure; what many proxies share is worked out once for a snapshot.
import type { MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { Proxy } from "./proxy.ts";
import { keyed, type GatewayShared, type Keyed, type ProxyView, type SidecarShared } from "./proxy-view.ts";
import { gatewayOwn, gatewayShared } from "./scope-gateway.ts";
import { sidecarOwn, sidecarShared } from "./scope-sidecar.ts";

interface SharedSections {
  readonly sidecars: Map<string, Keyed<SidecarShared>>;
  readonly gateways: Map<string, Keyed<GatewayShared>>;
}

const bySnapshot = new WeakMap<MeshSnapshot, SharedSections>();

export function scope(snapshot: MeshSnapshot, proxy: Proxy): ProxyView {
  let sections = bySnapshot.get(snapshot);
  if (sections === undefined) {
    sections = { sidecars: new Map(), gateways: new Map() };
    bySnapshot.set(snapshot, sections);
  }
  if (proxy.type === "sidecar") {
    const shared = remembered(sections.sidecars, proxy.namespace, () => sidecarShared(snapshot, proxy.namespace));
    return { type: "sidecar", shared, own: keyed(sidecarOwn(snapshot, proxy)) };
  }
  const inputs = JSON.stringify([proxy.namespace, Object.entries(proxy.labels), proxy.podPorts]);
  const shared = remembered(sections.gateways, inputs, () => gatewayShared(snapshot, proxy));
  return { type: "router", shared, own: keyed(gatewayOwn(snapshot, shared.value, proxy)) };
}

function remembered<T>(sections: Map<string, Keyed<T>>, inputs: string, build: () => T): Keyed<T> {
  let section = sections.get(inputs);
  if (section === undefined) {
    section = keyed(build());
    sections.set(inputs, section);
  }
  return section;
}
