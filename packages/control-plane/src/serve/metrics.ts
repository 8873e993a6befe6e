// The control plane's metrics, under the names and with the buckets that Istio's dashboards know (pilot/pkg/xds,
// pilot/pkg/model and pilot/pkg/serviceregistry there); docs/metrics.md says what moves each.
import { type Kind, kindDefinitions, kinds } from "@tulle/config";
import { resourceTypes } from "@tulle/xds";
import type { Counter, Gauge, Histogram, MetricRegistry } from "@tulle/telemetry";

/** Why proxies are pushed to, in Istio's words (model.TriggerReason). */
export type PushTrigger = "config" | "service" | "endpoint" | "proxy" | "secret" | "global" | "proxyrequest";

export interface ControlPlaneMetrics {
  readonly connections: Gauge;
  readonly services: Gauge;
  readonly virtualServices: Gauge;
  /** Connected sidecars that stand behind no Service. */
  readonly withoutService: Gauge;
  readonly endpointsNotReady: Gauge;
  readonly debounceSeconds: Histogram;
  readonly snapshotSeconds: Histogram;
  readonly queueSeconds: Histogram;
  readonly convergenceSeconds: Histogram;
  readonly sendSeconds: Histogram;
  readonly internalErrors: Counter;
  pushes(type: string): Counter;
  pushSeconds(type: string): Histogram;
  configBytes(type: string): Histogram;
  /** Two names for one count: Istio's present one and the one of older dashboards. */
  rejected(type: string): void;
  expiredNonces(type: string): Counter;
  triggers(type: PushTrigger): Counter;
  inboundUpdates(type: "config" | "svc" | "svcdelete" | "eds"): Counter;
  configEvents(kind: string, event: StoreEvent): Counter;
  registryEvents(kind: string, event: StoreEvent): Counter;
  /** Resources that were looked at before they are taken (Istio: its webhook). */
  validated(kind: Kind): Counter;
  refused(kind: Kind): Counter;
  /** Streams and calls that a limit, or what their client is, has ended. */
  turnedAway(status: string): Counter;
}

export type StoreEvent = "add" | "update" | "delete";

const timeBounds = [0.01, 0.1, 1, 3, 5, 10, 20, 30];
const proxyTimeBounds = [0.1, 0.5, 1, 3, 5, 10, 20, 30];
const snapshotBounds = [0.01, 0.1, 0.5, 1, 3, 5];
const sizeBounds = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000];

export function controlPlaneMetrics(registry: MetricRegistry, version: string): ControlPlaneMetrics {
  type Labels = Readonly<Record<string, string>>;
  const gauge = (name: string, help: string, labels: Labels = {}): Gauge => registry.gauge({ name, help, labels });
  const counter = (name: string, help: string, labels: Labels = {}): Counter =>
    registry.counter({ name, help, labels });
  const histogram = (name: string, help: string, bounds: readonly number[], labels: Labels = {}): Histogram =>
    registry.histogram({ name, help, labels }, bounds);
  const ofType = (type: string): Labels => ({ type: type.toLowerCase() });
  // What has not happened yet is 0, not missing: alerts compare with it.
  const rejects = (type: string): Counter =>
    counter("pilot_total_xds_rejects", "Responses that proxies refused, by type.", ofType(type));
  const refused = (kind: Kind): Counter =>
    counter("galley_validation_failed", "Resources that were refused.", {
      ...resourceOf(kind),
      reason: "invalid_resource",
    });
  resourceTypes.forEach(({ shortName }) => rejects(shortName));
  kinds.forEach((kind) => refused(kind));
  gauge("pilot_info", "Version of the control plane.", { version }).set(1);
  gauge("istio_build", "Build of the component.", { component: "pilot", tag: version }).set(1);
  return {
    connections: gauge("pilot_xds", "Proxies connected over xDS.", { version }),
    services: gauge("pilot_services", "Services known."),
    virtualServices: gauge("pilot_virt_services", "VirtualServices known."),
    withoutService: gauge("pilot_no_ip", "Connected sidecars whose address is behind no Service."),
    endpointsNotReady: gauge("pilot_endpoint_not_ready", "Endpoints that are not ready."),
    debounceSeconds: histogram(
      "pilot_debounce_time",
      "Seconds from a change to the begin of the push that carries it.",
      timeBounds,
    ),
    snapshotSeconds: histogram(
      "pilot_pushcontext_init_seconds",
      "Seconds that a new picture of the mesh took.",
      snapshotBounds,
    ),
    queueSeconds: histogram("pilot_proxy_queue_time", "Seconds that a proxy's push has waited.", proxyTimeBounds),
    convergenceSeconds: histogram(
      "pilot_proxy_convergence_time",
      "Seconds from a change until a proxy has answered all of its push.",
      proxyTimeBounds,
    ),
    sendSeconds: histogram("pilot_xds_send_time", "Seconds that a response took to encode and hand over.", timeBounds),
    internalErrors: counter("pilot_total_xds_internal_errors", "xDS streams that a fault of the control plane ended."),
    pushes: (type) => counter("pilot_xds_pushes", "xDS responses sent, by type.", ofType(type)),
    pushSeconds: (type) =>
      histogram("pilot_xds_push_time", "Seconds that the resources of a push took.", timeBounds, ofType(type)),
    configBytes: (type) => histogram("pilot_xds_config_size_bytes", "Bytes of a response.", sizeBounds, ofType(type)),
    rejected: (type) => {
      rejects(type).increment();
      counter(`pilot_xds_${type.toLowerCase()}_reject`, `Rejected ${type} responses.`).increment();
    },
    expiredNonces: (type) =>
      counter("pilot_xds_expired_nonce", "Answers to responses that were answered before.", ofType(type)),
    triggers: (type) => counter("pilot_push_triggers", "Pushes, by what caused them.", { type }),
    inboundUpdates: (type) => counter("pilot_inbound_updates", "Changes heard of, by type.", { type }),
    configEvents: (type, event) =>
      counter("pilot_k8s_cfg_events", "Changes of configuration, by kind.", { type, event }),
    registryEvents: (type, event) =>
      counter("pilot_k8s_reg_events", "Changes of Services, endpoints and pods.", { type, event }),
    validated: (kind) => counter("galley_validation_passed", "Resources that passed their check.", resourceOf(kind)),
    refused,
    turnedAway: (status) =>
      counter(
        "tulle_xds_turned_away_total",
        "xDS streams and certificate requests that were turned away, by gRPC status.",
        { status },
      ),
  };
}

/** By the version that its documentation names: what a document says is anybody's. */
function resourceOf(kind: Kind): Readonly<Record<"group" | "version" | "resource", string>> {
  const { apiVersions, plural } = kindDefinitions[kind];
  const [version = "", group = ""] = apiVersions[0]!.split("/").toReversed();
  return { group, version, resource: plural };
}
