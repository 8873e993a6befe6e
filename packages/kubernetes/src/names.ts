// Names that Tulle's parts on a cluster agree on: what is installed under them, what is written, and where a workload
// finds it. `install` writes manifests with them, the webhook injects by them, the control plane reads and writes them.

/** Where the control plane runs, and where what it keeps lies. */
export const rootNamespace = "tulle-system";

/** The revision of those who choose none. */
export const defaultRevision = "default";

/** `tulled`, or `tulled-R`: each revision has its own of what is named so. */
function ofRevision(name: string, revision: string): string {
  return revision === defaultRevision ? name : `${name}-${revision}`;
}

/** Of the control plane's Deployment, Service and ServiceAccount. */
export const controlPlaneName = (revision: string): string => ofRevision("tulled", revision);

/** By which workloads reach the control plane's Service. */
export function controlPlaneHost(revision: string, namespace = rootNamespace): string {
  return `${controlPlaneName(revision)}.${namespace}.svc`;
}

/** Every name that its Service has within the cluster; its certificate names all of them. */
export function controlPlaneHosts(revision: string, namespace = rootNamespace): readonly string[] {
  const name = controlPlaneName(revision);
  const host = `${name}.${namespace}.svc`;
  return [host, `${host}.cluster.local`, `${name}.${namespace}`, name];
}

export const controlPlanePorts = {
  /** Configuration and certificates, over TLS. */
  xds: { name: "tls-xds", port: 15_012, targetPort: 15_012 },
  webhook: { name: "https-webhook", port: 443, targetPort: 15_017 },
  /** The API, and metrics. */
  http: { name: "http-monitoring", port: 15_014, targetPort: 15_014 },
} as const;

/** Where machines join, on a Service of its own: what is outside of the cluster reaches that alone. */
export const joinPort = { name: "tls-join", port: 15_018, targetPort: 15_018 } as const;
export const joinService = (revision: string): string => ofRevision("tulled-join", revision);

/** That the control plane's pods, and what belongs to them, are found by. */
export function controlPlaneLabels(revision: string, version: string): Readonly<Record<string, string>> {
  return {
    ...controlPlaneSelector(revision),
    istio: "pilot",
    "app.kubernetes.io/name": "tulled",
    "app.kubernetes.io/part-of": "tulle",
    "app.kubernetes.io/version": version,
  };
}

/** Those of them that never change, as selectors must not. */
export function controlPlaneSelector(revision: string): Readonly<Record<string, string>> {
  return { app: "tulled", [revisionLabel]: revision };
}

export const revisionLabel = "tulle.io/rev";
/** Of a webhook configuration that is a revision tag: its name. */
export const tagLabel = "tulle.io/tag";
export const istioRevisionLabel = "istio.io/rev";

/** Programs without a shell; their tag is the version. */
export const images = {
  controlPlane: "tulle/tulled",
  proxy: "tulle/proxy",
  proxyEnvoy: "tulle/proxy-envoy",
  capture: "tulle/capture",
  cni: "tulle/cni",
} as const;

/** Exempt from capture: proxies alone run as it. */
export const proxyUser = 1337;
/** All other programs of ours. */
export const programUser = 10_001;

/** Where the control plane keeps files that do not outlive its pod. */
export const controlPlaneStateFolder = "/var/lib/tulle";

/** By the downward API, for a control plane to know itself. */
export const podNameVariable = "POD_NAME";
export const podNamespaceVariable = "POD_NAMESPACE";
export const serviceAccountVariable = "SERVICE_ACCOUNT";

/** The mesh's own authority and where its rotation stands; changed by compare-and-swap. */
export const authoritySecret = "tulle-ca-secret";
export const authoritySecretType = "tulle.io/ca-root";
/** An authority of the operator's, with Istio's four keys; it wins. */
export const givenAuthoritySecret = "cacerts";
/** The API's token, the keys of sign-ins, and what else is a secret. */
export const stateSecret = "tulle-state";

/**
 * Of the replica, of whatever revision, that writes what the cluster has once: statuses, roots in namespaces, the
 * authority's rotation, roll-outs' steps. Two that write the same would take back each other's words for ever.
 */
export const leaderLease = "tulle-leader";
/** What the other replicas tell it. */
export const reportsConfigMap = "tulle-replicas";
/** Of the replica that keeps its revision's own webhooks. */
export const webhooksLease = (revision: string): string => ofRevision("tulle-webhooks", revision);

/** In every namespace: the roots that workloads believe. */
export const rootsConfigMap = { name: "tulle-ca-root-cert", key: "root-cert.pem" } as const;

/** Istio's MeshConfig, in the root namespace. */
export const meshConfigMap = { name: "tulle", key: "mesh" } as const;

/** Both are installed with an empty `caBundle`, which the leader fills in. */
export const injectorWebhook = (revision: string): string => ofRevision("tulle-sidecar-injector", revision);
export const validatorWebhook = (revision: string): string => ofRevision("tulle-validator", revision);
export const webhookPaths = { inject: "/inject", validate: "/validate" } as const;

/** What a namespace or a pod is labelled with to be injected, or not to be. */
export const injectionLabels = {
  namespace: ["tulle-injection", "istio-injection"],
  revision: [revisionLabel, istioRevisionLabel],
  pod: ["sidecar.tulle.io/inject", "sidecar.istio.io/inject"],
} as const;

/** What injection puts into a pod. */
export const injectedContainers = {
  proxy: "tulle-proxy",
  /** Without the CNI plug-in: sets capture up. */
  capture: "tulle-capture",
  /** With it: fails where capture is not there. */
  validation: "tulle-validation",
} as const;

/** Where a workload's programs find what the cluster gives them. */
export const workloadPaths = {
  token: { folder: "/var/run/secrets/tokens", file: "istio-token", expirationSeconds: 43_200 },
  /** The ConfigMap `rootsConfigMap`. */
  roots: "/var/run/secrets/tulle",
  /** The downward API's `labels` and `annotations`. */
  pod: "/etc/tulle/pod",
  /** The agent's own, in memory. */
  state: "/var/lib/tulle",
} as const;
