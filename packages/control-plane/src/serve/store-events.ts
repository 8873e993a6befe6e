// Counts what comes into the store, and goes: what Istio counts of its watches of Kubernetes.
import type { Kind, MeshResource, Store, StoreChange, Unwatch } from "@tulle/config";
import type { ControlPlaneMetrics, PushTrigger, StoreEvent } from "./metrics.ts";

/** Kinds that are Istio's registry, as it names them; all others are configuration. */
const registryNames: Partial<Record<Kind, string>> = {
  Service: "Services",
  EndpointSlice: "EndpointSlice",
  Pod: "Pods",
};

const eventOf: Readonly<Record<StoreChange["type"], StoreEvent>> = {
  added: "add",
  modified: "update",
  deleted: "delete",
};

/** What is there already counts as added, as in the first list of a watch. */
export function countStoreEvents(store: Pick<Store, "all" | "watch">, metrics: ControlPlaneMetrics): Unwatch {
  for (const resource of store.all()) count(metrics, resource, "add");
  return store.watch((changes) => {
    for (const { type, resource } of changes) count(metrics, resource, eventOf[type]);
  });
}

function count(metrics: ControlPlaneMetrics, resource: MeshResource, event: StoreEvent): void {
  const { kind } = resource;
  const registryName = registryNames[kind];
  if (registryName === undefined) {
    metrics.configEvents(kind, event).increment();
    metrics.inboundUpdates("config").increment();
  } else {
    metrics.registryEvents(registryName, event).increment();
    if (kind === "Service") metrics.inboundUpdates(event === "delete" ? "svcdelete" : "svc").increment();
    else if (kind === "EndpointSlice") metrics.inboundUpdates("eds").increment();
  }
  // Whatever the store holds has passed its schema; what has not is counted where it is refused.
  if (event !== "delete") metrics.validated(kind).increment();
}

/** Why a change of the resource makes a push. */
export function triggerOf({ kind }: Pick<MeshResource, "kind">): PushTrigger {
  if (kind === "Service" || kind === "ServiceEntry") return "service";
  if (kind === "EndpointSlice" || kind === "WorkloadEntry") return "endpoint";
  if (kind === "Pod") return "proxy";
  if (kind === "Secret") return "secret";
  // The mesh's configuration holds for all.
  return kind === "ConfigMap" ? "global" : "config";
}
