// The stages between the store and the streams, made and connected: what changes in one of them is told to the next, and what
// each finds in the resources is gathered for whoever asks.
import { type Finding, isKind, keyText, type Place, placeOf, type ResourceKey, type Store } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/xds";
import type { ResourceStatus } from "./api/resource-routes.ts";
import { type KnownPods, knownPods } from "./ca/known-pods.ts";
import type { Security } from "./ca/open-security.ts";
import { fetchDocument, fetchJwks, type MeshAccess } from "./jwks/fetch-jwks.ts";
import { JwksKeys, type JwksKeysOptions } from "./jwks/jwks-keys.ts";
import { meshEndpoint } from "./jwks/mesh-endpoint.ts";
import { LoginProviders } from "./login-providers/login-providers.ts";
import { metadataUrl } from "./login-providers/provider-metadata.ts";
import type { SavedEndpoints } from "./login-providers/saved-endpoints.ts";
import type { PodPort } from "./scope/proxy.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import type { DebounceTimes } from "./serve/debounce.ts";
import { LoginSecrets } from "./serve/login-secrets.ts";
import { MeshState } from "./serve/mesh-state.ts";
import type { ControlPlaneMetrics } from "./serve/metrics.ts";
import { Pusher, type PusherOptions } from "./serve/pusher.ts";
import { refusalFindings, rejectionsOf } from "./serve/resource-status.ts";
import { SecretResources } from "./serve/secret-resources.ts";
import { TranslationCache } from "./serve/translation-cache.ts";
import { TurnedAway } from "./serve/turned-away.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";

const metadataTimeoutMs = 5000;

/** What sign-ins keep in the state folder. */
export interface LoginState {
  readonly rootSecret: Uint8Array;
  readonly saved: SavedEndpoints;
  readonly save: (endpoints: SavedEndpoints) => void;
}

export interface StagesOptions {
  readonly store: Store;
  readonly keys: Pick<JwksKeysOptions, "saved" | "save">;
  readonly login: LoginState;
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
  const { store, keys, login, security, clusterId, minimumTls, debounce, metrics, clock, log } = options;
  const accepted = new AcceptedResources(store);
  const cache = new TranslationCache(clusterId);
  const countResources = ({ snapshot }: MeshState): void => {
    metrics.services.set(snapshot.services.length);
    metrics.virtualServices.set(snapshot.virtualServices.length);
  };
  const podPorts = (namespace: string, name: string): readonly PodPort[] =>
    (store.get("Pod", namespace, name)?.spec.containers ?? []).flatMap((container) =>
      (container.ports ?? []).map((port) => ({ name: port.name ?? "", containerPort: port.containerPort })),
    );
  const client = security === undefined ? undefined : () => security.authority.client;
  const jwks = new JwksKeys({
    ...keys,
    clock,
    log,
    onChange: () => mesh.keysChanged(),
    placeOf: placesOf(store, "RequestAuthentication"),
    fetch: (location, timeoutMs) =>
      fetchJwks(location, timeoutMs, {
        resolve: (url) => meshEndpoint(url, mesh.snapshot.services, mesh.endpoints),
        client,
      }),
  });
  const logins = loginProviders(login, () => mesh, store, client, clock, log);
  const mesh: MeshState = new MeshState({
    store,
    reader: accepted,
    clock,
    debounce,
    jwks,
    logins,
    trustDomain: security?.authority.trustDomain,
    minimumTls,
    onChange: (change) => {
      countResources(mesh);
      pusher.meshChanged(change);
      const { services } = mesh.snapshot;
      const isReady = (url: URL): boolean => typeof meshEndpoint(url, services, mesh.endpoints) === "object";
      if (!change.endpoints) return;
      jwks.askAgain((url) => isReady(new URL(url)));
      logins.askAgain();
    },
  });
  const pods = knownPods(store);
  const podLabels = (namespace: string, name: string) => pods.get(namespace, name)?.labels;
  const served = [new SecretResources(store), new LoginSecrets(store, login.rootSecret)];
  const secrets: PusherOptions["secrets"] = {
    find: (name, namespace) => served.map((each) => each.find(name, namespace)).find((found) => found !== undefined),
  };
  const turnedAway = new TurnedAway(metrics, log, clock);
  const pusher = new Pusher({ mesh, cache, secrets, metrics, turnedAway, log, podPorts, podLabels });
  countResources(mesh);
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
  return {
    mesh,
    pusher,
    cache,
    accepted,
    pods,
    turnedAway,
    findings,
    statusOf: (key) => statusOf(key, accepted, pusher),
    close,
  };
}

function loginProviders(
  { saved, save }: LoginState,
  mesh: () => MeshState,
  store: Store,
  client: MeshAccess["client"],
  clock: Clock,
  log: Logger,
): LoginProviders {
  return new LoginProviders({
    saved,
    save,
    clock,
    log,
    onChange: () => mesh().keysChanged(),
    placeOf: placesOf(store, "BrowserLogin"),
    fetch: ({ issuer, service }) =>
      fetchDocument(metadataUrl(issuer), metadataTimeoutMs, {
        resolve: (url) => {
          const at = service === undefined ? url : new URL(`http://${service.hostname}:${service.port}`);
          return meshEndpoint(at, mesh().snapshot.services, mesh().endpoints);
        },
        client,
      }),
  });
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
