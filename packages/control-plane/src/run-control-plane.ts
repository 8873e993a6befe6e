// A control plane in one function: builds the first snapshot of what its store has, and serves xDS and the HTTP API
// until closed.
import { type Clock, systemClock } from "@tulle/timing";
import { descriptorLimit, DescriptorReserve, reachableAddresses } from "@tulle/listening";
import { type Finding, type Store } from "@tulle/config";
import { apiSocketName, endpoints } from "@tulle/config/api";
import { makeSocketPath } from "@tulle/identity/own";
import { type Logger, Logging, MetricRegistry, ProcessMetrics, openMetricExporter, openTracer } from "@tulle/telemetry";
import { readOrMakeToken } from "./api/api-token.ts";
import { changeRoutes } from "./api/change-routes.ts";
import { debugRoutes } from "./api/debug-routes.ts";
import { serveHttpApi } from "./api/http-api.ts";
import { machineRoutes } from "./api/machine-routes.ts";
import { resourceRoutes } from "./api/resource-routes.ts";
import { rolloutRoutes } from "./api/rollout-routes.ts";
import { routesOf } from "./api/routes.ts";
import { caRoutes } from "./api/ca-routes.ts";
import { openSecurity, type SecurityOptions } from "./ca/open-security.ts";
import type { MeshAuthority } from "./ca/mesh-authority.ts";
import { connectStages, type Stages } from "./connect-stages.ts";
import { makeInstanceId } from "./instance-id.ts";
import { parseSavedKeySet } from "./jwks/saved-key-set.ts";
import { parseSavedProvider } from "./login-providers/saved-provider.ts";
import { defaultMachineGraceMs, type Machines, openMachines } from "./machines/open-machines.ts";
import type { Replicas } from "./machines/machine-entries.ts";
import { openSavedRollouts } from "./rollouts/saved-rollouts.ts";
import { type DebounceTimes, defaultDebounce } from "./serve/debounce.ts";
import { openLoginRootSecret } from "./serve/login-secrets.ts";
import { controlPlaneMetrics } from "./serve/metrics.ts";
import { type Address, serveXds, type XdsAddresses } from "./serve/serve-xds.ts";
import type { TlsVersion } from "./snapshot/mesh-snapshot.ts";
import { parseSavedChange, Timeline } from "./serve/timeline.ts";
import { KeptEntries } from "./state/kept-entries.ts";
import type { KeptTexts, StateFolder } from "./state/state-folder.ts";

export interface ControlPlaneOptions extends XdsAddresses, Omit<SecurityOptions, "stateDirectory"> {
  /** Whoever opened it closes it, after the control plane. */
  readonly store: Store;
  /** Where the token, the authority, what was fetched and the API's socket lie. */
  readonly state: StateFolder;
  /** In the place of it: where what has to outlive the folder is kept, and shared by those who serve one mesh. */
  readonly shared?: KeptTexts;
  readonly httpAddress: Address;
  /** See `HttpApiOptions`. */
  readonly isReachedByAnyHost?: boolean;
  /** `host:port` each: where tokens send machines, unless told; where it listens for them when missing. */
  readonly joinAdvertise?: () => readonly string[];
  /** Of those that serve one mesh; undefined where this one does alone. */
  readonly replicas?: Replicas;
  /** How long the entry of a machine stays that has vanished; Istio's 10 s unless told. */
  readonly machineGraceMs?: number;
  /** Lowest version of TLS between workloads; 1.3 when missing. */
  readonly minimumTls?: TlsVersion;
  /** Forget the keys of issuers that an earlier run fetched. */
  readonly fresh?: boolean;
  /** CLUSTER in listings and metrics. */
  readonly clusterId?: string;
  readonly version?: string;
  /** What it is called in listings; a name is made up for one that has none. */
  readonly instanceId?: string;
  readonly debounce?: DebounceTimes;
  /** See `ResourceRoutesOptions`. */
  readonly maxResources?: number;
  readonly clock?: Clock;
  readonly logging?: Logging;
  /** Says whether its own work is traced, by OpenTelemetry's names; it is not without it. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface RunningControlPlane {
  readonly instanceId: string;
  /** Undefined where none was asked for. */
  readonly xdsAddress: Address | undefined;
  readonly xdsTlsAddress: Address | undefined;
  /** Where machines join; undefined where none can. */
  readonly joinAddress: Address | undefined;
  readonly httpAddress: Address;
  /** Who reaches it is the owner, and shows no token. */
  readonly socketPath: string;
  /** Undefined where nobody has a certificate. */
  readonly authority: MeshAuthority | undefined;
  readonly stages: Pick<Stages, "statusOf" | "accepted" | "pusher" | "mesh">;
  readonly timeline: Pick<Timeline, "since">;
  readonly metrics: MetricRegistry;
  findings(): readonly Finding[];
  /** Ends streams and connections; proxies go on with what they have. */
  close(): Promise<void>;
}

/** Resolves once everything is served. Rejects when an address is taken. */
export async function runControlPlane(options: ControlPlaneOptions): Promise<RunningControlPlane> {
  const { store, state, clusterId = "local", version = "0.1.0", minimumTls, debounce = defaultDebounce } = options;
  const { shared = state, leadership } = options;
  const { clock = systemClock, logging = new Logging() } = options;
  const log = logging.logger("control-plane");
  const { instanceId = makeInstanceId() } = options;
  const token = await readOrMakeToken(shared);
  // What has been opened, newest last: closed in turn at the end, and when a later part cannot be opened.
  const open = new AsyncDisposableStack();
  try {
    const metrics = new MetricRegistry();
    const { environment = {} } = options;
    const names = { environment, serviceName: "control-plane", version };
    const tracer = openTracer({ ...names, metrics, log });
    // Last of all: what ends is told, too.
    open.defer(() => tracer?.close());
    const { keys, providers, changes, rollouts } = await openKept(options, log, open);
    const securityOptions = { ...options, stateDirectory: state.path };
    const hasAuthority = options.xdsTlsAddress !== undefined || options.joinAddress !== undefined;
    const security = hasAuthority
      ? await openSecurity(securityOptions, metrics, clock, logging.logger("ca"), tracer)
      : undefined;
    const authority = security?.authority;
    open.defer(() => authority?.close());
    const machines = await openOwnMachines(options, authority, clock, logging.logger("machines"));
    open.defer(() => machines?.close());
    const kept = { keys, providers, rollouts, loginRootSecret: await openLoginRootSecret(shared) };
    const counted = controlPlaneMetrics(metrics, version);
    const given = { store, kept, security, clusterId, minimumTls, debounce, clock, log, tracer, machines, leadership };
    const stages = connectStages({ ...given, metrics: counted });
    open.defer(() => stages.close());
    // Of both ports: what is told of a shortage is told once.
    const descriptors = new DescriptorReserve(log, descriptorLimit());
    const {
      plaintext: xdsAddress,
      tls: xdsTlsAddress,
      join: joinAddress,
    } = open.use(await serveXds(options, instanceId, stages, security, clock, descriptors));
    open.defer(() => machines?.rest());
    const timeline = new Timeline({ ...stages, store, kept: changes, clock });
    open.defer(() => timeline.close());
    const { maxResources } = options;
    const resources = resourceRoutes({ ...stages, store, metrics: counted, maxResources });
    const measure = measuring(metrics, stages);
    const exporter = openMetricExporter({ ...names, metrics, refresh: measure, log });
    open.defer(() => exporter?.close());
    const debug = debugRoutes({ ...stages, store, metrics, measure, instanceId, version });
    const socketPath = makeSocketPath(state.path, apiSocketName);
    const http = await serveHttpApi({
      address: options.httpAddress,
      socketPath,
      token,
      credentials: authority?.credentials,
      isReachedByAnyHost: options.isReachedByAnyHost,
      descriptors,
      log,
      tracer,
      routes: routesOf(endpoints, {
        ...resources.handlers,
        ...changeRoutes({ timeline, pusher: stages.pusher }),
        ...caRoutes(authority),
        ...(joinAddress === undefined
          ? machineRoutes()
          : machineRoutes(machines, options.joinAdvertise ?? (() => reachableAddresses(joinAddress)))),
        ...rolloutRoutes(stages.rollouts),
        ...debug,
      }),
    });
    open.defer(() => http.close());
    authority?.follow(() => http.setCredentials(authority.credentials));
    open.defer(() => resources.close());
    const { address: httpAddress } = http;
    log.info("control plane serves", {
      instance: instanceId,
      xds: addressText(xdsAddress),
      xdsTls: addressText(xdsTlsAddress),
      join: addressText(joinAddress),
      http: addressText(httpAddress),
      findings: store.findings().length + stages.accepted.findings.length,
    });
    return {
      instanceId,
      xdsAddress,
      xdsTlsAddress,
      joinAddress,
      httpAddress,
      socketPath,
      authority,
      stages,
      timeline,
      metrics,
      findings: stages.findings,
      close: () => open.disposeAsync(),
    };
  } catch (error) {
    await open.disposeAsync();
    throw error;
  }
}

/** What an earlier run has fetched. What cannot be written is told, and the mesh goes on without it. */
async function openKept(
  { state, shared = state, fresh = false }: ControlPlaneOptions,
  log: Logger,
  open: AsyncDisposableStack,
) {
  const opened = async <Value>(
    name: string,
    message: string,
    parse: (value: unknown) => Value | undefined,
  ): Promise<KeptEntries<Value>> => {
    const onProblem = (error: unknown): void => log.warning(message, { reason: String(error) });
    const entries = await KeptEntries.open({ texts: state, name, parse, onProblem });
    open.defer(() => entries.close());
    return entries;
  };
  const keys = await opened("jwks.json", "keys could not be saved", (value) =>
    fresh ? undefined : parseSavedKeySet(value),
  );
  const providers = await opened(
    "login-providers.json",
    "endpoints of providers could not be saved",
    parseSavedProvider,
  );
  const changes = await opened("changes.json", "the timeline of changes could not be saved", (value) =>
    fresh ? undefined : parseSavedChange(value),
  );
  const rollouts = await openSavedRollouts(shared, (reason) =>
    log.error("where roll-outs stood cannot be read: they have to be started anew", { reason }),
  );
  return { keys, providers, changes, rollouts };
}

/**
 * Undefined where nobody has a certificate. Where machines can join no more, those that have joined are known all the
 * same: their certificates are good, and would pass for those of pods.
 */
async function openOwnMachines(
  options: ControlPlaneOptions,
  authority: MeshAuthority | undefined,
  clock: Clock,
  log: Logger,
): Promise<Machines | undefined> {
  const {
    store,
    state,
    shared = state,
    clusterId = "local",
    machineGraceMs: graceMs = defaultMachineGraceMs,
    replicas,
    leadership,
  } = options;
  if (authority === undefined) return undefined;
  return openMachines({ store, state: shared, authority, clusterId, graceMs, replicas, leadership, clock, log });
}

/** What is brought up to date before the metrics are shown. */
function measuring(metrics: MetricRegistry, stages: { measure(): void }): () => void {
  const process = new ProcessMetrics(metrics);
  return () => {
    process.refresh();
    stages.measure();
  };
}

function addressText(address: Address | undefined): string | undefined {
  return address === undefined ? undefined : `${address.host}:${address.port}`;
}
