// A control plane in one function: opens the store, builds the first snapshot, and serves xDS and the HTTP API until closed.
import path from "node:path";
import {
  analyze,
  type AnalyzeOptions,
  type Finding,
  isKind,
  keyText,
  type Place,
  placeOf,
  type ResourceKey,
  type Store,
} from "@tulle/config";
import { type Logger, Logging, MetricRegistry } from "@tulle/telemetry";
import { openWorkloadTokenKey, type WorkloadTokenKey, workloadTokenKeyFile } from "@tulle/identity/workload-token";
import { type AdsServerLimits, type Clock, type RunningAdsServer, serveAds, systemClock } from "@tulle/xds";
import { readOrMakeToken } from "./api/api-token.ts";
import { debugRoutes } from "./api/debug-routes.ts";
import { type CaMetrics, caMetrics } from "./ca/ca-metrics.ts";
import { caRoutes } from "./ca/ca-routes.ts";
import { type KnownPods, knownPods } from "./ca/known-pods.ts";
import { MeshAuthority } from "./ca/mesh-authority.ts";
import { serveProvenWorkloads } from "./ca/serve-proven-workloads.ts";
import { serveHttpApi } from "./api/http-api.ts";
import { type ResourceStatus, resourceRoutes } from "./api/resource-routes.ts";
import { makeInstanceId } from "./instance-id.ts";
import { fetchDocument, fetchJwks, type MeshAccess } from "./jwks/fetch-jwks.ts";
import { JwksKeys, type JwksKeysOptions } from "./jwks/jwks-keys.ts";
import { meshEndpoint } from "./jwks/mesh-endpoint.ts";
import { KeysFile, readSavedKeys, type SavedKeys } from "./jwks/saved-keys.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import { type DebounceTimes, defaultDebounce } from "./serve/debounce.ts";
import { type ControlPlaneMetrics, controlPlaneMetrics } from "./serve/metrics.ts";
import type { PodPort } from "./scope/proxy.ts";
import { LoginProviders } from "./login-providers/login-providers.ts";
import { EndpointsFile, readSavedEndpoints, type SavedEndpoints } from "./login-providers/saved-endpoints.ts";
import { metadataUrl } from "./login-providers/provider-metadata.ts";
import { MeshState } from "./serve/mesh-state.ts";
import { LoginSecrets, openLoginRootSecret } from "./serve/login-secrets.ts";
import { Pusher, type PusherOptions } from "./serve/pusher.ts";
import { refusalFindings, rejectionsOf } from "./serve/resource-status.ts";
import { SecretResources } from "./serve/secret-resources.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";
import { TranslationCache } from "./serve/translation-cache.ts";
import { LayeredStore } from "./stores/layered-store.ts";

export interface ControlPlaneOptions {
  /** Folder of manifests, read without its sub-folders and watched; none when resources come over the API alone. */
  readonly directory?: string;
  /** Where applied resources, the token and the API's socket lie. Made when missing. */
  readonly stateDirectory: string;
  /** Port 0 takes a free one, here and below. Without TLS, for whoever may connect; none when missing. */
  readonly xdsAddress?: Address;
  /** With TLS, for workloads that show their certificate, or ask for it. With it comes the certificate authority. */
  readonly xdsTlsAddress?: Address;
  readonly httpAddress: Address;
  /** `cluster.local` unless told. */
  readonly trustDomain?: string;
  /** Lowest version of TLS between workloads; 1.3 when missing. */
  readonly minimumTls?: TlsVersion;
  /** See `MeshAuthorityOptions`, as the next two. */
  readonly cacertsDirectory?: string;
  readonly workloadTtlMs?: number;
  readonly maxWorkloadTtlMs?: number;
  /** Forget what was applied before. */
  readonly fresh?: boolean;
  /** Whoever runs the pods; see `LayeredStoreOptions.runtimeOwner`. */
  readonly runtimeOwner?: string;
  /** CLUSTER in listings and metrics. */
  readonly clusterId?: string;
  readonly version?: string;
  /** How the workloads are connected; some findings are about one mode alone. */
  readonly networkMode?: NonNullable<AnalyzeOptions["networkMode"]>;
  readonly debounce?: DebounceTimes;
  readonly xdsLimits?: Partial<AdsServerLimits>;
  /** See `ResourceRoutesOptions`. */
  readonly maxResources?: number;
  readonly clock?: Clock;
  readonly logging?: Logging;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface RunningControlPlane {
  readonly instanceId: string;
  /** Undefined where none was asked for. */
  readonly xdsAddress: Address | undefined;
  readonly xdsTlsAddress: Address | undefined;
  readonly httpAddress: Address;
  /** Writes need no token here. */
  readonly socketPath: string;
  readonly store: Store;
  findings(): readonly Finding[];
  /** Ends streams and connections; proxies go on with what they have. */
  close(): Promise<void>;
}

/** Resolves once everything is served. Rejects when an address is taken, or the folder cannot be read. */
export async function runControlPlane(options: ControlPlaneOptions): Promise<RunningControlPlane> {
  const { stateDirectory, version = "0.1.0", clock = systemClock, logging = new Logging() } = options;
  const log = logging.logger("control-plane");
  const instanceId = makeInstanceId();
  const token = await readOrMakeToken(stateDirectory);
  // What has been opened, newest last: closed in turn at the end, and when a later part cannot be opened.
  const open = new AsyncDisposableStack();
  try {
    const store = await openStore(options, clock, log);
    open.defer(() => store.close());
    const metrics = new MetricRegistry();
    const keysPath = path.join(stateDirectory, "jwks.json");
    const keysFile = new KeysFile(keysPath, (error) =>
      log.warning("keys could not be saved", { reason: String(error) }),
    );
    open.defer(() => keysFile.close());
    const saved = options.fresh === true ? new Map<string, never>() : await readSavedKeys(keysPath);
    const keys = { saved, save: (all: SavedKeys) => keysFile.save(all) };
    const security = await openSecurity(options, metrics, clock, logging.logger("ca"));
    if (security !== undefined) open.defer(async () => security.authority.close());
    const loginRootSecret = await openLoginRootSecret(stateDirectory);
    const providersPath = path.join(stateDirectory, "login-providers.json");
    const providersFile = new EndpointsFile(providersPath, (error) =>
      log.warning("endpoints of providers could not be saved", { reason: String(error) }),
    );
    open.defer(() => providersFile.close());
    const savedProviders = await readSavedEndpoints(providersPath);
    const login: LoginState = {
      rootSecret: loginRootSecret,
      saved: savedProviders,
      save: (all) => providersFile.save(all),
    };
    const counted = controlPlaneMetrics(metrics, version);
    const core = buildCore(options, store, keys, security, login, counted, clock, log);
    const { mesh, pusher, cache, accepted } = core;
    open.defer(() => mesh.close());
    open.defer(() => core.jwks.close());
    open.defer(() => core.logins.close());
    const servers = await serveXds(options, instanceId, core, security, clock);
    open.use(servers);
    const resources = resourceRoutes({
      store,
      findings: core.findings,
      statusOf: (key) => statusOf(key, core),
      ...(options.maxResources === undefined ? {} : { maxResources: options.maxResources }),
    });
    const debug = {
      store,
      mesh: () => mesh,
      cache,
      connected: () => pusher.connected,
      isPending: () => mesh.isPending || pusher.isPending,
      metrics,
      instanceId,
      version,
    };
    const socketPath = path.join(stateDirectory, "control-plane.sock");
    const routes = [...resources.routes, ...caRoutes(security?.authority), ...debugRoutes(debug)];
    const http = await serveHttpApi({ address: options.httpAddress, socketPath, token, log, routes });
    open.defer(() => http.close());
    open.defer(() => resources.close());
    const { plaintext: xdsAddress, tls: xdsTlsAddress } = servers;
    log.info("control plane serves", {
      instance: instanceId,
      xds: addressText(xdsAddress),
      xdsTls: addressText(xdsTlsAddress),
      http: addressText(http.address),
      findings: store.findings().length + accepted.findings.length,
    });
    return {
      instanceId,
      xdsAddress,
      xdsTlsAddress,
      httpAddress: http.address,
      socketPath,
      store,
      findings: core.findings,
      close: () => open.disposeAsync(),
    };
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
}

function addressText(address: Address | undefined): string | undefined {
  return address === undefined ? undefined : `${address.host}:${address.port}`;
}

/** What there is of identity where the port with TLS is served. */
interface Security {
  readonly authority: MeshAuthority;
  readonly metrics: CaMetrics;
  readonly tokenKey: WorkloadTokenKey;
  readonly log: Logger;
}

async function openSecurity(
  options: ControlPlaneOptions,
  registry: MetricRegistry,
  clock: Clock,
  log: Logger,
): Promise<Security | undefined> {
  const { stateDirectory, trustDomain = "cluster.local", cacertsDirectory, workloadTtlMs, maxWorkloadTtlMs } = options;
  if (options.xdsTlsAddress === undefined) return undefined;
  const opened = await openWorkloadTokenKey(path.join(stateDirectory, workloadTokenKeyFile));
  if (!opened.ok) throw new Error(opened.message);
  const metrics = caMetrics(registry);
  const authority = await MeshAuthority.open({
    stateDirectory,
    trustDomain,
    clock,
    log,
    metrics,
    ...(cacertsDirectory === undefined ? {} : { cacertsDirectory }),
    ...(workloadTtlMs === undefined ? {} : { workloadTtlMs }),
    ...(maxWorkloadTtlMs === undefined ? {} : { maxWorkloadTtlMs }),
  });
  return { authority, metrics, tokenKey: opened.key, log };
}

interface XdsServers extends AsyncDisposable {
  readonly plaintext: Address | undefined;
  readonly tls: Address | undefined;
}

async function serveXds(
  options: ControlPlaneOptions,
  controlPlaneId: string,
  { pusher, pods }: Core,
  security: Security | undefined,
  clock: Clock,
): Promise<XdsServers> {
  const { xdsAddress, xdsTlsAddress, xdsLimits: limits } = options;
  const shared = { controlPlaneId, clock, ...(limits === undefined ? {} : { limits }) };
  const open = new AsyncDisposableStack();
  const opened = (server: RunningAdsServer): Address | undefined => {
    open.defer(() => server.close());
    return "port" in server.address ? server.address : undefined;
  };
  try {
    const plaintext = xdsAddress && opened(await serveAds({ ...shared, address: xdsAddress, handlers: pusher }));
    if (xdsTlsAddress === undefined || security === undefined) return disposable({ plaintext, tls: undefined }, open);
    const { authority, metrics, log, tokenKey } = security;
    const server = { ...shared, address: xdsTlsAddress };
    const proven = { server, handlers: pusher, authority, tokenKeys: [tokenKey], pods, metrics, log };
    return disposable({ plaintext, tls: opened(await serveProvenWorkloads(proven)) }, open);
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
}

function disposable(servers: Pick<XdsServers, "plaintext" | "tls">, open: AsyncDisposableStack): XdsServers {
  return { ...servers, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

function openStore(options: ControlPlaneOptions, clock: Clock, log: Logger): Promise<LayeredStore> {
  const { directory, stateDirectory, fresh = false, runtimeOwner = "", networkMode = "loopback" } = options;
  return LayeredStore.open({
    folder: directory,
    stateDirectory,
    fresh,
    runtimeOwner,
    analyze: (resources) => analyze(resources, { networkMode, hasAuthority: options.xdsTlsAddress !== undefined }),
    clock,
    log,
  });
}

const metadataTimeoutMs = 5000;

/** What sign-ins keep in the state folder. */
interface LoginState {
  readonly rootSecret: Uint8Array;
  readonly saved: SavedEndpoints;
  readonly save: (endpoints: SavedEndpoints) => void;
}

/** The stages between the store and the stream. */
interface Core {
  readonly mesh: MeshState;
  readonly pusher: Pusher;
  readonly cache: TranslationCache;
  readonly accepted: AcceptedResources;
  readonly jwks: JwksKeys;
  readonly logins: LoginProviders;
  readonly pods: KnownPods;
  readonly findings: () => readonly Finding[];
}

function buildCore(
  { clusterId = "local", minimumTls, debounce = defaultDebounce }: ControlPlaneOptions,
  store: Store,
  keys: Pick<JwksKeysOptions, "saved" | "save">,
  security: Security | undefined,
  login: LoginState,
  metrics: ControlPlaneMetrics,
  clock: Clock,
  log: Logger,
): Core {
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
  const jwks = new JwksKeys({
    ...keys,
    clock,
    log,
    onChange: () => mesh.keysChanged(),
    placeOf: (namespace, name, field) => {
      const resource = store.get("RequestAuthentication", namespace, name);
      const place = resource === undefined ? undefined : placeOf(resource, field);
      return place === undefined ? {} : { place };
    },
    fetch: (location, timeoutMs) =>
      fetchJwks(location, timeoutMs, {
        resolve: (url) => meshEndpoint(url, mesh.snapshot.services, mesh.endpoints),
        client: security === undefined ? undefined : () => security.authority.client,
      }),
  });
  const client = security === undefined ? undefined : () => security.authority.client;
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
  const pusher = new Pusher({ mesh, cache, secrets, metrics, log, podPorts, podLabels });
  countResources(mesh);
  const findings = (): readonly Finding[] => [
    ...store.findings(),
    ...accepted.findings,
    ...jwks.findings(),
    ...refusalFindings(pusher.connected, (key) => placeOfKey(store, key)),
    ...logins.findings(mesh.snapshot.browserLogins ?? []),
  ];
  return { mesh, pusher, cache, accepted, jwks, logins, pods, findings };
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
    placeOf: (namespace, name, field) => {
      const resource = store.get("BrowserLogin", namespace, name);
      const place = resource === undefined ? undefined : placeOf(resource, field);
      return place === undefined ? {} : { place };
    },
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

function placeOfKey(store: Store, { kind, namespace, name }: ResourceKey): Place | undefined {
  const resource = isKind(kind) ? store.get(kind, namespace, name) : undefined;
  return resource === undefined ? undefined : placeOf(resource);
}

function statusOf(key: ResourceKey, { accepted, pusher }: Core): ResourceStatus | undefined {
  const rejections = rejectionsOf(key, pusher.connected);
  const findings = accepted.findings.filter(({ resource }) => resource && keyText(resource) === keyText(key));
  if (rejections.length === 0 && findings.length === 0) return undefined;
  return { ...(findings.length === 0 ? {} : { findings }), ...(rejections.length === 0 ? {} : { rejections }) };
}
