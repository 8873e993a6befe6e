// A control plane in one function: opens the store, builds the first snapshot, and serves xDS and the HTTP API until closed.
import path from "node:path";
import { analyze, type AnalyzeOptions, type Finding, keyText, type MeshResource, type Store } from "@tulle/config";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import { type AdsServerLimits, type Clock, serveAds, systemClock } from "@tulle/xds";
import { readOrMakeToken } from "./api/api-token.ts";
import { debugRoutes } from "./api/debug-routes.ts";
import { serveHttpApi } from "./api/http-api.ts";
import { type ResourceStatus, resourceRoutes } from "./api/resource-routes.ts";
import { makeInstanceId } from "./instance-id.ts";
import { AcceptedResources } from "./serve/accepted-resources.ts";
import { type DebounceTimes, defaultDebounce } from "./serve/debounce.ts";
import { controlPlaneMetrics } from "./serve/metrics.ts";
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
  const {
    stateDirectory,
    clusterId = "local",
    version = "0.1.0",
    clock = systemClock,
    networkMode = "loopback",
  } = options;
  const logging = options.logging ?? new Logging();
  const log = logging.logger("control-plane");
  const instanceId = makeInstanceId();
  const token = await readOrMakeToken(stateDirectory);
  const store = await LayeredStore.open({
    folder: options.directory,
    stateDirectory,
    fresh: options.fresh ?? false,
    runtimeOwner: options.runtimeOwner ?? "",
    analyze: (resources: readonly MeshResource[]) => analyze(resources, { networkMode }),
    clock,
    log,
  });
  const metrics = new MetricRegistry();
  const accepted = new AcceptedResources(store);
  const cache = new TranslationCache(clusterId);
  const known = controlPlaneMetrics(metrics, version);
  const countResources = (): void => {
    known.services.set(mesh.snapshot.services.length);
    known.virtualServices.set(mesh.snapshot.virtualServices.length);
  };
  const pusher = new Pusher({
    mesh: () => mesh,
    cache,
    metrics: known,
    log,
    podPorts: (namespace, name) =>
      (store.get("Pod", namespace, name)?.spec.containers ?? []).flatMap((container) =>
        (container.ports ?? []).map((port) => ({ name: port.name ?? "", containerPort: port.containerPort })),
      ),
  });
  const mesh: MeshState = new MeshState({
    store,
    reader: accepted,
    clock,
    debounce: options.debounce ?? defaultDebounce,
    onChange: (change) => {
      countResources();
      pusher.meshChanged(change);
    },
  });
  countResources();
  const findings = (): readonly Finding[] => [...store.findings(), ...accepted.findings];
  const resources = resourceRoutes({
    store,
    findings,
    statusOf: (key): ResourceStatus | undefined => {
      const rejections = rejectionsOf(key, pusher.connected);
      const setAside = accepted.findings.filter(({ resource }) => resource && keyText(resource) === keyText(key));
      if (rejections.length === 0 && setAside.length === 0) return undefined;
      return {
        ...(setAside.length === 0 ? {} : { findings: setAside }),
        ...(rejections.length === 0 ? {} : { rejections }),
      };
    },
  });
  const socketPath = path.join(stateDirectory, "control-plane.sock");
  const xds = await serveAds({
    address: options.xdsAddress,
    handlers: pusher,
    controlPlaneId: instanceId,
    clock,
    ...(options.xdsLimits === undefined ? {} : { limits: options.xdsLimits }),
  });
  const http = await serveHttpApi({
    address: options.httpAddress,
    socketPath,
    token,
    log,
    routes: [
      ...resources.routes,
      ...debugRoutes({
        store,
        mesh: () => mesh,
        cache,
        connected: () => pusher.connected,
        metrics,
        instanceId,
        version,
      }),
    ],
  });
  const xdsAddress = "port" in xds.address ? xds.address : options.xdsAddress;
  log.info("control plane serves", {
    instance: instanceId,
    xds: `${xdsAddress.host}:${xdsAddress.port}`,
    http: `${http.address.host}:${http.address.port}`,
  });
  return {
    instanceId,
    xdsAddress,
    httpAddress: http.address,
    socketPath,
    store,
    findings,
    close: async () => {
      mesh.close();
      resources.close();
      await Promise.all([xds.close(), http.close(), store.close()]);
    },
  };
}
