// The control plane in a Kubernetes cluster: the two packages that know nothing of each other, put together. What it
// keeps lies in the API server; of several replicas all serve, and one leads.
import { networkInterfaces } from "node:os";
import path from "node:path";
import { analyze, type Store } from "@tulle/config";
import {
  checkResource,
  type ControlPlaneOptions,
  type Replicas,
  runControlPlane,
  StateFolder,
} from "@tulle/control-plane";
import {
  type ClusterAccess,
  controlPlaneHosts,
  controlPlaneName,
  controlPlanePorts,
  defaultRevision,
  inClusterAccess,
  injectPods,
  joinPort,
  joinService,
  kubeconfigAccess,
  KubernetesClient,
  KubernetesStore,
  type KubernetesStoreOptions,
  LeaderElection,
  leaderLease,
  podNameVariable,
  ReplicaReports,
  RootConfigMaps,
  rootNamespace,
  SecretAuthority,
  SecretTexts,
  serveWebhooks,
  StatusWriter,
  tokenReviewer,
  validateResources,
  webhookPaths,
  WebhookRoots,
  webhooksLease,
} from "@tulle/kubernetes";
import type { Logging } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import type { Address } from "../../command/command-options.ts";
import { knownOfObjects } from "./known-of-objects.ts";

export interface ClusterOptions extends Omit<ControlPlaneOptions, "store" | "state" | "httpAddress" | "logging"> {
  /** Those that are given count before the pod's own account. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly revision: string;
  readonly withIstioGroups: boolean;
  readonly stateDirectory: string;
  /** All addresses and the usual port unless told, as `xdsTlsAddress`. */
  readonly httpAddress?: Address;
  readonly webhookAddress?: Address;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logging: Logging;
}

/**
 * Other control planes' names that clients of theirs ask for: what was made for Istio finds Tulle by a Service of that
 * name.
 */
const istioHost = "istiod.istio-system.svc";
/** A pod that ends is asked for a while: nodes hear later than it does that its Service leads there no more. */
const stillAskedMs = 4_000;
/**
 * Proxies learn within a moment that a pod leaves, however many changes come at once: its programs end 5 s later. Istio
 * waits for 10 s at the most.
 */
const debounce = { quietMs: 20, maxMs: 1_000 };
/** A token names no more. */
const mostAdvertised = 4;
/** Files that only this replica needs, in a folder of its own: a volume's belongs to the node. */
const ownFolder = "control-plane";

/** Resolves once it serves. `stopped` gives up a start that waits for an API server. */
export async function runClusterControlPlane(
  options: ClusterOptions,
  stopped: AbortSignal,
): Promise<{ close(): Promise<void> }> {
  const { revision, withIstioGroups, environment, logging, version = "" } = options;
  const clock = systemClock;
  const log = logging.logger("kubernetes");
  const namespace = rootNamespace;
  await using opening = new AsyncDisposableStack();
  const { access, isPods } = await clusterAccess(options);
  const client = new KubernetesClient(access, `tulled/${version}`);
  opening.defer(() => client.close());
  log.info("the cluster is followed", { server: access.server, by: access.origin, revision });
  const read = { client, revision, withIstioGroups };
  const store = await KubernetesStore.open({ ...read, analyze: analyzeCluster, clock, log }, stopped);
  opening.defer(() => store.close());
  const state = new StateFolder(path.join(options.stateDirectory, ownFolder), log);
  const podName = environment[podNameVariable];
  const identity = `${podName ?? "tulled"}_${crypto.randomUUID()}`;
  const candidate = { client, namespace, identity, clock, log };
  const election = new LeaderElection({ ...candidate, name: leaderLease });
  const webhooksElection = new LeaderElection({
    ...candidate,
    name: webhooksLease(revision),
    verb: "keeps its webhooks",
  });
  opening.defer(() => election.close());
  opening.defer(() => webhooksElection.close());
  // Whoever comes to a control plane insists on the mesh's name for it, whatever the revision.
  const names = new Set([...controlPlaneHosts(defaultRevision), ...controlPlaneHosts(revision), istioHost]);
  const [first, ...others] = [...names];
  const everywhere = allAddresses();
  const alive = replicasIn(store, podName ?? "tulled", isPods);
  const running = await runControlPlane({
    ...options,
    ...(podName === undefined ? {} : { instanceId: podName }),
    store,
    state,
    replicas: alive,
    shared: new SecretTexts({ client, namespace, clock, log }),
    xdsTlsAddress: options.xdsTlsAddress ?? { host: everywhere, port: controlPlanePorts.xds.targetPort },
    ...(options.joinAddress?.host === "0.0.0.0" ? { joinAddress: { ...options.joinAddress, host: everywhere } } : {}),
    joinAdvertise: options.joinAdvertise ?? (() => loadBalanced(store, revision)),
    httpAddress: options.httpAddress ?? { host: everywhere, port: controlPlanePorts.http.targetPort },
    isReachedByAnyHost: true,
    authorityStorage: new SecretAuthority({ client, namespace, clock, log }),
    identity: { hosts: [first!, ...others], serviceAccount: controlPlaneName(revision) },
    leadership: election,
    debounce,
    judgeToken: tokenReviewer(client, Date.now),
    clock,
    logging,
  });
  opening.defer(() => running.close());
  const { authority } = running;
  if (authority === undefined) throw new Error("a control plane in a cluster has an authority");
  const roots = {
    pem: () => authority.signing.trustBundlePem,
    follow: (listener: () => void) => authority.follow(listener),
  };
  const unread = running.metrics.counter({
    name: "pilot_k8s_object_errors",
    help: "Objects of the cluster that could not be read.",
  });
  store.followUnread((times) => unread.add(times));
  const configMaps = new RootConfigMaps({ client, store, roots, leadership: election, clock, log });
  opening.defer(() => configMaps.close());
  const webhookRoots = new WebhookRoots({ client, revision, roots, leadership: webhooksElection, clock, log });
  opening.defer(() => webhookRoots.close());
  const webhooks = await serveWebhooks({
    address: options.webhookAddress ?? { host: everywhere, port: controlPlanePorts.webhook.targetPort },
    credentials: () => authority.credentials,
    handlers: {
      [webhookPaths.inject]: injectPods({ client, store, version, revision, metrics: running.metrics, log }),
      [webhookPaths.validate]: validateResources({
        store,
        check: checkResource,
        metrics: running.metrics,
        analyze: (resources) => analyzeCluster(resources, { drafts: [] }),
      }),
    },
    isReady: () => webhookRoots.areWritten(),
    log,
  });
  opening.defer(() => webhooks.close());
  authority.follow(() => webhooks.renew());
  const common = { client, store, known: knownOfObjects(running), leadership: election, clock, log };
  const replicas =
    podName === undefined || !isPods
      ? undefined
      : new ReplicaReports({ ...common, namespace, own: podName, isAlive: (name) => alive.isAlive(name) });
  opening.defer(() => replicas?.close());
  const statuses = new StatusWriter({ ...common, replicas });
  opening.defer(() => statuses.close());
  // Last of all: whoever leads can do all that is to be done.
  election.start();
  webhooksElection.start();
  const open = opening.move();
  return {
    close: async () => {
      // Another may lead at once.
      await Promise.all([election.close(), webhooksElection.close()]);
      if (isPods) await later(stillAskedMs);
      await open.disposeAsync();
    },
  };
}

/** Where machines reach the Service of the port; they have no way to pods by these' own addresses. */
function loadBalanced(store: Pick<Store, "get">, revision: string): readonly string[] {
  const ingress = store.get("Service", rootNamespace, joinService(revision))?.status?.loadBalancer?.ingress ?? [];
  const hosts = ingress.flatMap(({ ip }) => ip ?? []);
  return hosts.slice(0, mostAdvertised).map((host) => `${host.includes(":") ? `[${host}]` : host}:${joinPort.port}`);
}

/** Those that are pods; of programs beside a cluster nobody knows whether they run. */
function replicasIn(store: Pick<Store, "get" | "watch">, own: string, isPods: boolean): Replicas {
  const ended = new Set<unknown>(["Succeeded", "Failed"]);
  return {
    own,
    isAlive: (name) => {
      const pod = store.get("Pod", rootNamespace, name);
      return isPods ? pod !== undefined && !ended.has(pod.status?.phase) : true;
    },
    follow: (listener) =>
      store.watch((changes) => {
        const isOne = ({ resource: { kind, metadata } }: (typeof changes)[number]): boolean =>
          kind === "Pod" && metadata.namespace === rootNamespace;
        if (changes.some(isOne)) listener();
      }),
  };
}

function later(delayMs: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  systemClock.after(delayMs, resolve);
  return promise;
}

async function clusterAccess({
  kubeconfig: file,
  context,
  environment,
}: ClusterOptions): Promise<{ readonly access: ClusterAccess; readonly isPods: boolean }> {
  const isNamed = file !== undefined || context !== undefined;
  const own = isNamed ? undefined : await inClusterAccess(environment, systemClock);
  const named = { ...(file === undefined ? {} : { file }), ...(context === undefined ? {} : { context }) };
  const access = own ?? (await kubeconfigAccess({ ...named, environment, clock: systemClock }));
  if (access === undefined)
    throw new Error("there is neither a pod's account nor a kubeconfig: name one by --kubeconfig");
  return { access, isPods: own !== undefined };
}

const analyzeCluster: KubernetesStoreOptions["analyze"] = (resources, options) =>
  analyze(resources, { ...options, networkMode: "namespaces", hasAuthority: true });

/** Of both families where the machine has both: a pod's address may be of either. */
function allAddresses(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.some(({ family }) => family === "IPv6") ? "::" : "0.0.0.0";
}
