// A control plane in one function: opens the store, builds the first snapshot, and serves xDS and the HTTP API until closed.
import path from "node:path";
import { analyze, type AnalyzeOptions, apiSocketName, type Finding, type Store } from "@tulle/config";
import { makeOwnFolder, makeSocketPath } from "@tulle/identity/own";
import { descriptorLimit, DescriptorReserve, type Logger, Logging, MetricRegistry } from "@tulle/telemetry";
import { type Clock, systemClock } from "@tulle/xds";
import { readOrMakeToken } from "./api/api-token.ts";
import { debugRoutes } from "./api/debug-routes.ts";
import { serveHttpApi } from "./api/http-api.ts";
import { resourceRoutes } from "./api/resource-routes.ts";
import { caRoutes } from "./ca/ca-routes.ts";
import { openSecurity, type SecurityOptions } from "./ca/open-security.ts";
import { connectStages, type LoginState } from "./connect-stages.ts";
import { makeInstanceId } from "./instance-id.ts";
import { KeysFile, readSavedKeys, type SavedKeys } from "./jwks/saved-keys.ts";
import { EndpointsFile, readSavedEndpoints } from "./login-providers/saved-endpoints.ts";
import { type DebounceTimes, defaultDebounce } from "./serve/debounce.ts";
import { openLoginRootSecret } from "./serve/login-secrets.ts";
import { controlPlaneMetrics } from "./serve/metrics.ts";
import { type Address, serveXds, type XdsAddresses } from "./serve/serve-xds.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";
import { LayeredStore } from "./stores/layered-store.ts";

export interface ControlPlaneOptions extends XdsAddresses, SecurityOptions {
  /** Folder of manifests, read without its sub-folders and watched; none when resources come over the API alone. */
  readonly directory?: string;
  /** Where applied resources, the token and the API's socket lie. Made when missing. */
  readonly stateDirectory: string;
  readonly httpAddress: Address;
  /** Lowest version of TLS between workloads; 1.3 when missing. */
  readonly minimumTls?: TlsVersion;
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
  /** See `ResourceRoutesOptions`. */
  readonly maxResources?: number;
  readonly clock?: Clock;
  readonly logging?: Logging;
}

export interface RunningControlPlane {
  readonly instanceId: string;
  /** Undefined where none was asked for. */
  readonly xdsAddress: Address | undefined;
  readonly xdsTlsAddress: Address | undefined;
  readonly httpAddress: Address;
  /** Who reaches it is the owner, and shows no token. */
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
  const wasOpenToOthers = makeOwnFolder(stateDirectory);
  if (wasOpenToOthers)
    log.warning("other users could reach the state directory: it is closed, and has a new token", { stateDirectory });
  const token = await readOrMakeToken(stateDirectory, wasOpenToOthers);
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
    const hasAuthority = options.xdsTlsAddress !== undefined;
    const security = hasAuthority ? await openSecurity(options, metrics, clock, logging.logger("ca")) : undefined;
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
    const { clusterId = "local", minimumTls, debounce = defaultDebounce } = options;
    const made = { store, keys, login, security, clusterId, minimumTls, debounce, metrics: counted, clock, log };
    const stages = connectStages(made);
    const { mesh, pusher, cache, accepted } = stages;
    open.defer(() => stages.close());
    // Of both ports: what is told of a shortage is told once.
    const descriptors = new DescriptorReserve(log, descriptorLimit());
    const servers = await serveXds(options, instanceId, stages, security, clock, descriptors);
    open.use(servers);
    const resources = resourceRoutes({
      store,
      findings: stages.findings,
      statusOf: stages.statusOf,
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
    const socketPath = makeSocketPath(stateDirectory, apiSocketName);
    const routes = [...resources.routes, ...caRoutes(security?.authority), ...debugRoutes(debug)];
    const authority = security?.authority;
    const credentials = authority?.credentials;
    const http = await serveHttpApi({
      address: options.httpAddress,
      socketPath,
      token,
      credentials,
      descriptors,
      log,
      routes,
    });
    open.defer(() => http.close());
    authority?.follow(() => http.setCredentials(authority.credentials));
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
      findings: stages.findings,
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

function openStore(options: ControlPlaneOptions, clock: Clock, log: Logger): Promise<LayeredStore> {
  const { directory, stateDirectory, fresh = false, runtimeOwner = "", networkMode = "loopback" } = options;
  return LayeredStore.open({
    folder: directory,
    stateDirectory,
    fresh,
    runtimeOwner,
    analyze: (resources, { drafts }) =>
      analyze(resources, { drafts, networkMode, hasAuthority: options.xdsTlsAddress !== undefined }),
    clock,
    log,
  });
}
