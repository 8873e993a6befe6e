// A control plane in one function: opens the store, builds the first snapshot, and serves xDS and the HTTP API until closed.
import path from "node:path";
import {
  analyze,
  type AnalyzeOptions,
  type Finding,
  keyText,
  placeOf,
  type ResourceKey,
  type Store,
} from "@tulle/config";
import { type Logger, Logging, MetricRegistry } from "@tulle/telemetry";
import { type AdsServerLimits, type Clock, serveAds, systemClock } from "@tulle/xds";
import { readOrMakeToken } from "./api/api-token.ts";
import { debugRoutes } from "./api/debug-routes.ts";
import { serveHttpApi } from "./api/http-api.ts";
import { type ResourceStatus, resourceRoutes } from "./api/resource-routes.ts";
import { makeInstanceId } from "./instance-id.ts";
import { fetchJwks } from "./jwks/fetch-jwks.ts";
import { JwksKeys, type JwksKeysOptions } from "./jwks/jwks-keys.ts";
import { meshEndpoint } from "./jwks/mesh-endpoint.ts";
import { KeysFile, readSavedKeys, type SavedKeys } from "./jwks/saved-keys.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import { type DebounceTimes, defaultDebounce } from "./serve/debounce.ts";
import { type ControlPlaneMetrics, controlPlaneMetrics } from "./serve/metrics.ts";
import type { PodPort } from "./scope/proxy.ts";
import { MeshState } from "./serve/mesh-state.ts";
import { Pusher } from "./serve/pusher.ts";
import { rejectionsOf } from "./serve/resource-status.ts";
import { TranslationCache } from "./serve/translation-cache.ts";
import { LayeredStore } from "./stores/layered-store.ts";

export interface ControlPlaneOptions {
  /** Folder of manifests, read without its sub-folders and watched; none when resources come over the API alone. */
  readonly directory?: string;
  /** Where applied resources, the token and the API's socket lie. Made when missing. */
  readonly stateDirectory: string;
  /** Port 0 takes a free one. */
  readonly xdsAddress: { readonly host: string; readonly port: number };
  readonly httpAddress: { readonly host: string; readonly port: number };
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
  readonly clock?: Clock;
  readonly logging?: Logging;
}

export interface RunningControlPlane {
  readonly instanceId: string;
  readonly xdsAddress: { readonly host: string; readonly port: number };
  readonly httpAddress: { readonly host: string; readonly port: number };
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
    const core = buildCore(options, store, keys, controlPlaneMetrics(metrics, version), clock, log);
    const { mesh, pusher, cache, accepted } = core;
    open.defer(() => mesh.close());
    open.defer(() => core.jwks.close());
    const xds = await serveAds({
      address: options.xdsAddress,
      handlers: pusher,
      controlPlaneId: instanceId,
      clock,
      ...(options.xdsLimits === undefined ? {} : { limits: options.xdsLimits }),
    });
    open.defer(() => xds.close());
    const resources = resourceRoutes({ store, findings: core.findings, statusOf: (key) => statusOf(key, core) });
    const debug = { store, mesh: () => mesh, cache, connected: () => pusher.connected, metrics, instanceId, version };
    const socketPath = path.join(stateDirectory, "control-plane.sock");
    const routes = [...resources.routes, ...debugRoutes(debug)];
    const http = await serveHttpApi({ address: options.httpAddress, socketPath, token, log, routes });
    open.defer(() => http.close());
    open.defer(() => resources.close());
    const xdsAddress = "port" in xds.address ? xds.address : options.xdsAddress;
    log.info("control plane serves", {
      instance: instanceId,
      xds: `${xdsAddress.host}:${xdsAddress.port}`,
      http: `${http.address.host}:${http.address.port}`,
      findings: store.findings().length + accepted.findings.length,
    });
    return {
      instanceId,
      xdsAddress,
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

function openStore(options: ControlPlaneOptions, clock: Clock, log: Logger): Promise<LayeredStore> {
  const { directory, stateDirectory, fresh = false, runtimeOwner = "", networkMode = "loopback" } = options;
  return LayeredStore.open({
    folder: directory,
    stateDirectory,
    fresh,
    runtimeOwner,
    analyze: (resources) => analyze(resources, { networkMode }),
    clock,
    log,
  });
}

/** The stages between the store and the stream. */
interface Core {
  readonly mesh: MeshState;
  readonly pusher: Pusher;
  readonly cache: TranslationCache;
  readonly accepted: AcceptedResources;
  readonly jwks: JwksKeys;
  readonly findings: () => readonly Finding[];
}

function buildCore(
  { clusterId = "local", debounce = defaultDebounce }: ControlPlaneOptions,
  store: Store,
  keys: Pick<JwksKeysOptions, "saved" | "save">,
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
      fetchJwks(location, timeoutMs, (url) => meshEndpoint(url, mesh.snapshot.services, mesh.endpoints)),
  });
  const mesh: MeshState = new MeshState({
    store,
    reader: accepted,
    clock,
    debounce,
    jwks,
    onChange: (change) => {
      countResources(mesh);
      pusher.meshChanged(change);
    },
  });
  const pusher = new Pusher({ mesh, cache, metrics, log, podPorts });
  countResources(mesh);
  const findings = (): readonly Finding[] => [...store.findings(), ...accepted.findings, ...jwks.findings()];
  return { mesh, pusher, cache, accepted, jwks, findings };
}

function statusOf(key: ResourceKey, { accepted, pusher }: Core): ResourceStatus | undefined {
  const rejections = rejectionsOf(key, pusher.connected);
  const findings = accepted.findings.filter(({ resource }) => resource && keyText(resource) === keyText(key));
  if (rejections.length === 0 && findings.length === 0) return undefined;
  return { ...(findings.length === 0 ? {} : { findings }), ...(rejections.length === 0 ? {} : { rejections }) };
}
