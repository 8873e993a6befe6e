// The stages between the store and the streams, made and connected: what changes in one of them is told to the next,
// and what each finds in the resources is gathered for whoever asks.
import type { Clock } from "@tulle/timing";
import { type Finding, isKind, keyText, type Place, placeOf, type ResourceKey, type Store } from "@tulle/config";
import type { ResourceStatus } from "@tulle/config/api";
import type { Logger } from "@tulle/telemetry";
import { type KnownPods, knownPods } from "./ca/known-pods.ts";
import type { Security } from "./ca/open-security.ts";
import { fetchDocument, fetchJwks } from "./jwks/fetch-jwks.ts";
import { JwksKeys, type JwksKeysOptions } from "./jwks/jwks-keys.ts";
import { MeshAddresses } from "./jwks/mesh-endpoint.ts";
import type { SavedKeySet } from "./jwks/saved-key-set.ts";
import { LoginProviders } from "./login-providers/login-providers.ts";
import { metadataUrl, type ProviderEndpoints } from "./login-providers/provider-metadata.ts";
import type { PodPort } from "./scope/proxy.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import type { DebounceTimes } from "./serve/debounce.ts";
import { LoginSecrets } from "./serve/login-secrets.ts";
import { MeshState } from "./serve/mesh-state.ts";
import type { ControlPlaneMetrics } from "./serve/metrics.ts";
import { Pusher } from "./serve/pusher.ts";
import { refusalFindings, rejectionsOf } from "./serve/resource-status.ts";
import { SecretResources } from "./serve/secret-resources.ts";
import { TranslationCache } from "./serve/translation-cache.ts";
import { TurnedAway } from "./serve/turned-away.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";
import type { KeptEntries } from "./state/kept-entries.ts";

const metadataTimeoutMs = 5000;

/** What outlives the process. */
export interface Kept {
  readonly keys: Pick<KeptEntries<SavedKeySet>, "saved" | "save">;
  readonly providers: Pick<KeptEntries<ProviderEndpoints>, "saved" | "save">;
  /** Of sign-ins: see `LoginSecrets`. */
  readonly loginRootSecret: Uint8Array;
}

export interface StagesOptions {
  readonly store: Store;
  readonly kept: Kept;
  /** Undefined: workloads get no certificates. */
  readonly security: Security | undefined;
  readonly clusterId: string;
  readonly minimumTls: TlsVersion | undefined;
  readonly debounce: DebounceTimes;
  readonly metrics: ControlPlaneMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The stages between the store and the stream. */
export interface Stages {
  readonly mesh: MeshState;
  readonly pusher: Pusher;
  readonly cache: TranslationCache;
  readonly accepted: AcceptedResources;
  readonly pods: KnownPods;
  readonly turnedAway: TurnedAway;
  /** What any of them has to say of the resources. */
  readonly findings: () => readonly Finding[];
  readonly statusOf: (key: ResourceKey) => ResourceStatus | undefined;
  close(): void;
}

export function connectStages(options: StagesOptions): Stages {
  const { store, kept, security, clusterId, minimumTls, debounce, metrics, clock, log } = options;
  const accepted = new AcceptedResources(store);
  const cache = new TranslationCache(clusterId);
  const addresses = new MeshAddresses();
  const { jwks, logins } = issuers(options, addresses);
  const trustDomain = security?.authority.trustDomain;
  const picture = { store, reader: accepted, clock, debounce, trustDomain, minimumTls };
  const mesh = new MeshState({ ...picture, jwks, logins });
  const pods = knownPods(store);
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
    log,
    podPorts: (namespace, name) => podPorts(store, namespace, name),
    podLabels: (namespace, name) => pods.get(namespace, name)?.labels,
  });
  const seen = (): void => {
    addresses.update(mesh);
    metrics.services.set(mesh.snapshot.services.length);
    metrics.virtualServices.set(mesh.snapshot.virtualServices.length);
  };
  seen();
  mesh.follow((change) => {
    seen();
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
  const close = (): void => {
    logins.close();
    jwks.close();
    mesh.close();
  };
  const status = (key: ResourceKey): ResourceStatus | undefined => statusOf(key, accepted, pusher);
  return { mesh, pusher, cache, accepted, pods, turnedAway, findings, statusOf: status, close };
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

function statusOf(key: ResourceKey, accepted: AcceptedResources, pusher: Pusher): ResourceStatus | undefined {
  const rejections = rejectionsOf(key, pusher.connected);
  const findings = accepted.findings.filter(({ resource }) => resource && keyText(resource) === keyText(key));
  if (rejections.length === 0 && findings.length === 0) return undefined;
  return { ...(findings.length === 0 ? {} : { findings }), ...(rejections.length === 0 ? {} : { rejections }) };
}
