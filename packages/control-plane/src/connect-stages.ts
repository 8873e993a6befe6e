// The stages between the store and the streams, made and connected: what changes in one of them is told to the next,
// and what each finds in the resources is gathered for whoever asks.
import type { Clock } from "@tulle/timing";
import { type Finding, isKind, keyText, type Place, placeOf, type ResourceKey, type Store } from "@tulle/config";
import type { ResourceStatus, RolloutView } from "@tulle/config/api";
import type { Logger, ProcessTracer } from "@tulle/telemetry";
import { type KnownPods, knownPods } from "./ca/known-pods.ts";
import type { Security } from "./ca/open-security.ts";
import { fetchDocument, fetchJwks } from "./jwks/fetch-jwks.ts";
import { JwksKeys, type JwksKeysOptions } from "./jwks/jwks-keys.ts";
import { MeshAddresses } from "./jwks/mesh-endpoint.ts";
import type { SavedKeySet } from "./jwks/saved-key-set.ts";
import { LoginProviders } from "./login-providers/login-providers.ts";
import { metadataUrl, type ProviderEndpoints } from "./login-providers/provider-metadata.ts";
import { queryPrometheus } from "./rollouts/query-prometheus.ts";
import { AgentSockets } from "./rollouts/agent-sockets.ts";
import { readProxyMetrics } from "./rollouts/read-proxy-metrics.ts";
import { RolloutController } from "./rollouts/rollout-controller.ts";
import type { SavedRollouts } from "./rollouts/saved-rollouts.ts";
import { isTrafficLine } from "./rollouts/traffic-counts.ts";
import { localitiesOfPods } from "./snapshot/localities.ts";
import type { Machines } from "./machines/open-machines.ts";
import type { PodPort } from "./scope/proxy.ts";
import type { ProxyView } from "./scope/proxy-view.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import type { DebounceTimes } from "./serve/debounce.ts";
import { LoginSecrets } from "./serve/login-secrets.ts";
import { MeshState } from "./serve/mesh-state.ts";
import type { ControlPlaneMetrics } from "./serve/metrics.ts";
import { Pusher } from "./serve/pusher.ts";
import { refusalFindings, rejectionsOf } from "./serve/resource-status.ts";
import { SecretResources } from "./serve/secret-resources.ts";
import { countStoreEvents } from "./serve/store-events.ts";
import { TranslationCache } from "./serve/translation-cache.ts";
import { TurnedAway } from "./serve/turned-away.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";
import type { Leadership } from "./state/leadership.ts";
import type { KeptEntries } from "./state/kept-entries.ts";

const metadataTimeoutMs = 5000;

/** What outlives the process. */
export interface Kept {
  readonly keys: Pick<KeptEntries<SavedKeySet>, "saved" | "save">;
  readonly providers: Pick<KeptEntries<ProviderEndpoints>, "saved" | "save">;
  readonly rollouts: SavedRollouts;
  /** Of sign-ins: see `LoginSecrets`. */
  readonly loginRootSecret: Uint8Array;
}

export interface StagesOptions {
  readonly store: Store;
  readonly kept: Kept;
  /** Undefined: workloads get no certificates. */
  readonly security: Security | undefined;
  /** Undefined where nobody has a certificate. */
  readonly machines?: Machines | undefined;
  readonly leadership?: Leadership | undefined;
  readonly clusterId: string;
  readonly minimumTls: TlsVersion | undefined;
  readonly debounce: DebounceTimes;
  readonly metrics: ControlPlaneMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tracer?: ProcessTracer | undefined;
}

/** The stages between the store and the stream. */
export interface Stages {
  readonly mesh: MeshState;
  readonly pusher: Pusher;
  readonly cache: TranslationCache;
  readonly accepted: AcceptedResources;
  readonly pods: KnownPods;
  readonly rollouts: RolloutController;
  readonly turnedAway: TurnedAway;
  readonly machines: Machines | undefined;
  /** What any of them has to say of the resources. */
  readonly findings: () => readonly Finding[];
  readonly statusOf: (key: ResourceKey) => ResourceStatus | undefined;
  /** Sets the gauges that are counted when somebody looks. */
  readonly measure: () => void;
  close(): Promise<void>;
}

export function connectStages(options: StagesOptions): Stages {
  const { store, kept, security, clusterId, minimumTls, debounce, metrics, clock, log, tracer, machines } = options;
  const accepted = new AcceptedResources(store);
  const cache = new TranslationCache(clusterId);
  const addresses = new MeshAddresses();
  const { jwks, logins } = issuers(options, addresses);
  const trustDomain = security?.authority.trustDomain;
  const picture = { store, reader: accepted, clock, debounce, metrics, trustDomain, minimumTls, tracer };
  const rollouts = rolloutController(options, accepted, addresses);
  const mesh = new MeshState({ ...picture, jwks, logins, rollouts });
  const pods = knownPods(store, machines);
  const localityOfPod = localitiesOfPods((name) => store.get("Node", "", name)?.metadata.labels);
  const served = [new SecretResources(store), new LoginSecrets(store, kept.loginRootSecret)];
  const turnedAway = new TurnedAway(metrics, log, clock);
  const pusher = new Pusher({
    mesh,
    cache,
    secrets: {
      find: (name, namespace) => served.map((each) => each.find(name, namespace)).find((found) => found !== undefined),
    },
    metrics,
    turnedAway,
    clock,
    log,
    tracer,
    podPorts: (namespace, name) => podPorts(store, namespace, name),
    podLabels: (namespace, name) => pods.get(namespace, name)?.labels,
    knownOf: (namespace, name) => {
      const pod = store.get("Pod", namespace, name);
      const portsByName = machines?.portsOf(namespace, name);
      const locality = pod === undefined ? machines?.localityOf(namespace, name) : localityOfPod(pod);
      return {
        ...(portsByName === undefined ? {} : { portsByName }),
        ...(locality === undefined ? {} : { locality }),
      };
    },
  });
  const seen = (): void => {
    addresses.update(mesh);
    metrics.services.set(mesh.snapshot.services.length);
    metrics.virtualServices.set(mesh.snapshot.virtualServices.length);
  };
  seen();
  const uncount = countStoreEvents(store, metrics);
  rollouts.meshChanged(mesh);
  mesh.follow((change) => {
    seen();
    rollouts.meshChanged(mesh);
    pusher.meshChanged(change);
    if (!change.endpoints) return;
    jwks.askAgain((url) => typeof addresses.resolve(new URL(url)) === "object");
    logins.askAgain();
  });
  const findings = () => [
    ...store.findings(),
    ...accepted.findings,
    ...jwks.findings(),
    ...refusalFindings(pusher.connected, (key) => placeOfKey(store, key)),
    ...logins.findings(mesh.snapshot.browserLogins ?? []),
  ];
  const close = async (): Promise<void> => {
    await rollouts.close();
    logins.close();
    jwks.close();
    mesh.close();
    uncount();
  };
  const status = (key: ResourceKey): ResourceStatus | undefined => statusOf(key, accepted, pusher, rollouts);
  const measure = (): void => {
    const endpoints = store.list("EndpointSlice").flatMap((slice) => slice.endpoints);
    metrics.endpointsNotReady.set(endpoints.filter(({ conditions }) => conditions?.ready === false).length);
    metrics.withoutService.set(pusher.connected.filter(({ view }) => isBehindNoService(view)).length);
  };
  const seenBy = { findings, statusOf: status, measure, close };
  return { mesh, pusher, cache, accepted, pods, rollouts, turnedAway, machines, ...seenBy };
}

function isBehindNoService(view: ProxyView | undefined): boolean {
  return view?.type === "sidecar" && view.own.value.inbound.length === 0;
}

/** What is fetched of those who issue tokens, from outside and from Services of the mesh. */
function issuers({ store, kept, security, clock, log }: StagesOptions, addresses: MeshAddresses) {
  const client = security === undefined ? undefined : () => security.authority.client;
  const jwks = new JwksKeys({
    saved: kept.keys.saved,
    save: (keys) => kept.keys.save(keys),
    clock,
    log,
    placeOf: placesOf(store, "RequestAuthentication"),
    fetch: (location, timeoutMs) =>
      fetchJwks(location, timeoutMs, { resolve: (url) => addresses.resolve(url), client }),
  });
  const logins = new LoginProviders({
    saved: kept.providers.saved,
    save: (endpoints) => kept.providers.save(endpoints),
    clock,
    log,
    placeOf: placesOf(store, "BrowserLogin"),
    fetch: ({ issuer, service }) => {
      const at = service && new URL(`http://${service.hostname}:${service.port}`);
      const resolve = (url: URL) => addresses.resolve(at ?? url);
      return fetchDocument(metadataUrl(issuer), metadataTimeoutMs, { resolve, client });
    },
  });
  return { jwks, logins };
}

function rolloutController(
  { store, kept, security, leadership, clock, log }: StagesOptions,
  reader: AcceptedResources,
  addresses: MeshAddresses,
): RolloutController {
  const client = security === undefined ? undefined : () => security.authority.client;
  const fetch = (url: string, timeoutMs: number) =>
    fetchDocument(url, timeoutMs, { resolve: (asked) => addresses.resolve(asked), client });
  const agents = new AgentSockets();
  const sources = {
    readMetrics: (address: string, host: string) =>
      readProxyMetrics(address, (line) => isTrafficLine(line, host), agents),
    query: (prometheus: Parameters<typeof queryPrometheus>[0], allowed: readonly string[]) =>
      queryPrometheus(prometheus, allowed, fetch),
  };
  return new RolloutController({ store, reader, saved: kept.rollouts, sources, leadership, clock, log });
}

function podPorts(store: Store, namespace: string, name: string): readonly PodPort[] {
  return (store.get("Pod", namespace, name)?.spec.containers ?? []).flatMap((container) =>
    (container.ports ?? []).map((port) => ({ name: port.name ?? "", containerPort: port.containerPort })),
  );
}

/** Where a field of a resource stands, for findings about it. */
function placesOf(
  store: Store,
  kind: "RequestAuthentication" | "BrowserLogin",
): NonNullable<JwksKeysOptions["placeOf"]> {
  return (namespace, name, field) => {
    const resource = store.get(kind, namespace, name);
    const place = resource === undefined ? undefined : placeOf(resource, field);
    return place === undefined ? {} : { place };
  };
}

function placeOfKey(store: Store, { kind, namespace, name }: ResourceKey): Place | undefined {
  const resource = isKind(kind) ? store.get(kind, namespace, name) : undefined;
  return resource === undefined ? undefined : placeOf(resource);
}

function statusOf(
  key: ResourceKey,
  accepted: AcceptedResources,
  pusher: Pusher,
  rollouts: RolloutController,
): ResourceStatus | undefined {
  const rejections = rejectionsOf(key, pusher.connected);
  const findings = accepted.findings.filter(({ resource }) => resource && keyText(resource) === keyText(key));
  const view = key.kind === "Rollout" ? rollouts.view(key.namespace, key.name) : undefined;
  if (rejections.length === 0 && findings.length === 0 && view === undefined) return undefined;
  return {
    ...(findings.length === 0 ? {} : { findings }),
    ...(rejections.length === 0 ? {} : { rejections }),
    ...(view === undefined ? {} : { rollout: withoutHistory(view) }),
  };
}

function withoutHistory({ history: _long, namespace: _known, name: _too, ...view }: RolloutView) {
  return view;
}
