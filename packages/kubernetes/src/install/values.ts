// What an operator may choose of an installation: one table, of which come the types, the checks, the defaults, and
// each chart's values.yaml and values.schema.json. Names that Istio's charts have are Istio's (`global.hub`,
// `global.tag`, `revision`, `meshConfig`, `replicaCount`, `autoscaling.…`); each chart's values stand under its own
// name where charts are put together, and at the top in the chart itself.
import { images } from "../names.ts";

/** Of the programs that are installed unless `global.tag` names others: this one's. */
export const installedVersion = "0.1.0";

/** Registry and folder that the images' names begin with. */
const hub = images.controlPlane.split("/")[0]!;

export type Fields = Readonly<Record<string, unknown>>;

export interface Leaf {
  readonly type: "text" | "whole" | "switch" | "mapping" | "list";
  readonly description: string;
  readonly default: unknown;
  /** Of a text. */
  readonly choices?: readonly string[];
}

export interface Group {
  readonly [name: string]: Leaf | Group;
}

const text = (fallback: string, description: string, choices?: readonly string[]) =>
  ({ type: "text", description, default: fallback, ...(choices === undefined ? {} : { choices }) }) as const;
const whole = (fallback: number, description: string) => ({ type: "whole", description, default: fallback }) as const;
const isOn = (fallback: boolean, description: string) => ({ type: "switch", description, default: fallback }) as const;
const mapping = (fallback: Fields, description: string) =>
  ({ type: "mapping", description, default: fallback }) as const;
const list = (fallback: readonly unknown[], description: string) =>
  ({ type: "list", description, default: fallback }) as const;

const requests = (cpu: string, memory: string): Fields => ({ requests: { cpu, memory } });

/** Where and how pods run, alike for each chart. */
const placing = {
  nodeSelector: mapping({}, "Labels of the nodes on which its pods may run."),
  tolerations: list([], "Taints that its pods bear."),
  affinity: mapping({}, "Which nodes and neighbours its pods prefer."),
  podAnnotations: mapping({}, "Annotations of its pods."),
} as const;

const failurePolicy = (what: string) =>
  text("Fail", `What becomes of ${what} while no control plane answers.`, ["Fail", "Ignore"]);

const logLevels = ["off", "critical", "error", "warning", "info", "debug", "trace"] as const;

const revision = text("default", "Which control plane it is: several revisions run beside each other.");

export const valueTable = {
  global: {
    hub: text(hub, "Where images come from: a registry and a folder in it."),
    tag: text(installedVersion, "The images' tag, which is the version."),
    imagePullPolicy: text("IfNotPresent", "When nodes fetch images.", ["IfNotPresent", "Always", "Never"]),
    imagePullSecrets: list([], "Secrets to fetch images with, such as [{name: registry}]."),
    multiCluster: {
      clusterName: text("Kubernetes", "The cluster's name in status listings and metrics."),
    },
    trustDomain: text("cluster.local", "Whom the authority's certificates vouch for."),
    network: text("", "The network of its pods, where there are several."),
    cni: {
      enabled: isOn(false, "Capture is set up by each node's network plug-in: pods need no rights for it."),
    },
    proxy: {
      kind: text("tulle", "Which proxy pods get.", ["tulle", "envoy"]),
      logLevel: text("info", "What proxies log.", logLevels),
      resources: mapping(
        { requests: { cpu: "100m", memory: "160Mi" }, limits: { cpu: "2", memory: "512Mi" } },
        "What each proxy asks for. Its heap is sized by the limit.",
      ),
      nativeSidecar: isOn(true, "Proxies are init containers that go on running."),
      holdApplicationUntilProxyStarts: isOn(true, "Where they are not: applications start after them."),
      clusterDomain: text("cluster.local", "What names of the cluster end in."),
      includeInboundPorts: text("*", "Ports whose connections come by the proxy."),
      excludeInboundPorts: text("", "Ports whose connections do not."),
      includeIPRanges: text("*", "Ranges to which connections go by the proxy."),
      excludeIPRanges: text("", "Ranges to which they do not."),
      includeOutboundPorts: text("", "Ports to which they do, whatever the address."),
      excludeOutboundPorts: text("", "Ports to which they do not, whatever the address."),
    },
    networkPolicy: {
      enabled: isOn(false, "NetworkPolicies that leave open what is served, and nothing else."),
    },
  },
  base: {
    enabled: isOn(true, "The mesh's kinds, and what users may do with them."),
    meshConfig: mapping({}, "Istio's MeshConfig: what holds for the mesh as a whole, whatever the revision."),
    createNamespace: isOn(false, "The namespace itself is among the objects. Helm has --create-namespace."),
    istioCustomResources: isOn(
      false,
      "The kinds of Istio's groups, for manifests written for Istio in a cluster without it; see tulled.watchIstioResources.",
    ),
    keepCustomResources: isOn(
      true,
      "Helm leaves the kinds, and all objects of them, where they are when the chart is uninstalled.",
    ),
  },
  tulled: {
    enabled: isOn(true, "The control plane."),
    revision,
    replicaCount: whole(2, "How many of it run; one of them leads."),
    logLevel: text("info", "What it logs.", logLevels),
    watchIstioResources: isOn(
      false,
      "Resources of Istio's groups count too. Where Istio runs as well, both would act on them.",
    ),
    sidecarInjectorWebhook: {
      enabled: isOn(true, "Pods are injected as they are made."),
      istioLabels: isOn(true, "Istio's labels (istio-injection, istio.io/rev, sidecar.istio.io/inject) count too."),
      failurePolicy: failurePolicy("pods that are to be injected"),
      rewriteAppHTTPProbe: isOn(
        true,
        "Probes of injected pods are asked by the proxy, which needs no certificate there.",
      ),
      defaultTemplates: list([], "Templates of pods that name none."),
      templates: mapping({}, "Templates by name: what is laid over pods, in YAML."),
    },
    validationWebhook: {
      enabled: isOn(true, "Resources that are wrong by themselves are refused."),
      failurePolicy: failurePolicy("resources that are to be checked"),
    },
    machines: {
      enabled: isOn(false, "Machines outside of the cluster join it by a token."),
      address: text(
        "",
        "host:port where they reach it, which tokens name; the IP address of its load balancer unless told.",
      ),
      service: {
        type: text("LoadBalancer", "How machines reach it.", ["LoadBalancer", "NodePort", "ClusterIP"]),
        annotations: mapping({}, "Annotations of the Service, for the provider of load balancers."),
        externalTrafficPolicy: text(
          "Local",
          "Local keeps machines' addresses, by which they are known; Cluster asks for tokens that name them.",
          ["Local", "Cluster"],
        ),
      },
    },
    resources: mapping(requests("100m", "256Mi"), "What each of its pods asks for."),
    ...placing,
  },
  gateway: {
    enabled: isOn(false, "A gateway: the way in for clients that are no workloads."),
    name: text("tulle-ingressgateway", "Of the Deployment, and of all that belongs to it."),
    revision: text("default", "Which control plane it belongs to."),
    labels: mapping(
      { istio: "ingressgateway", tulle: "ingressgateway" },
      "Labels of its pods, by which Gateways select it.",
    ),
    replicaCount: whole(1, "How many run, unless autoscaling decides."),
    autoscaling: {
      enabled: isOn(false, "As many run as their CPU asks for."),
      minReplicas: whole(1, "At least so many."),
      maxReplicas: whole(5, "At most so many."),
      targetCPUUtilizationPercentage: whole(80, "Of what each asks for."),
    },
    service: {
      type: text("LoadBalancer", "How clients reach it.", ["LoadBalancer", "NodePort", "ClusterIP"]),
      ports: list(
        [
          { name: "status-port", port: 15_021, targetPort: 15_021, protocol: "TCP" },
          { name: "http2", port: 80, targetPort: 8080, protocol: "TCP" },
          { name: "https", port: 443, targetPort: 8443, protocol: "TCP" },
        ],
        "What is open. Pods listen on the target ports; none below 1024 without a right of its own.",
      ),
      annotations: mapping({}, "Annotations of the Service, for the provider of load balancers."),
      externalTrafficPolicy: text(
        "Cluster",
        "Local keeps clients' addresses, and leads to pods of the same node alone.",
        ["Cluster", "Local"],
      ),
    },
    terminationGracePeriodSeconds: whole(60, "How long requests may take that are under way when a pod ends."),
    resources: mapping(requests("100m", "160Mi"), "What each of its pods asks for."),
    ...placing,
  },
  cni: {
    enabled: isOn(false, "The network plug-in that captures pods without rights of their own; see global.cni.enabled."),
    name: text("tulle-cni", "Of the DaemonSet, and of all that belongs to it."),
    cniBinDir: text("/opt/cni/bin", "Where the nodes' network plug-ins lie."),
    cniConfDir: text("/etc/cni/net.d", "Where the nodes' network settings lie."),
    socketDir: text("/run/tulle-cni", "Where the plug-in's socket lies on each node; this program's alone."),
    excludeNamespaces: text(
      "kube-system",
      "Pods there start without it, with commas between; those of its own do, too.",
    ),
    resources: mapping(requests("20m", "64Mi"), "What each of its pods asks for."),
    ...placing,
    nodeSelector: mapping({ "kubernetes.io/os": "linux" }, "Labels of the nodes on which its pods run."),
    tolerations: list([{ operator: "Exists" }], "Taints that its pods bear."),
  },
  "authorization-server": {
    enabled: isOn(false, "An OAuth 2.0 and OpenID Connect server."),
    name: text("tulle-authorization-server", "Of the Deployment, and of all that belongs to it."),
    issuer: text("", "Its public base URL. It does not start without one."),
    config: mapping({}, "Its other settings, as in its configuration file."),
    secret: text(
      "",
      "A Secret whose entries are settings in its environment (TULLE_AUTH_DATABASE), for what nobody else may read.",
    ),
    replicaCount: whole(1, "How many run; more than one need a database of their own."),
    persistence: {
      enabled: isOn(false, "Its SQLite database outlives its pod. Without it, and without PostgreSQL, nothing does."),
      size: text("1Gi", "How much room it asks for."),
    },
    resources: mapping(requests("100m", "160Mi"), "What each of its pods asks for."),
    ...placing,
  },
} as const satisfies Readonly<Record<string, Group>>;

export type ComponentName = Exclude<keyof typeof valueTable, "global">;

/** Values of the whole, with all defaults in their places. */
export type Values = Readonly<Record<string, Fields>>;

type Paths<G> = {
  [Name in keyof G & string]: G[Name] extends Leaf ? Name : `${Name}.${Paths<G[Name]>}`;
}[keyof G & string];

/** Values of several, such as `global`. */
export type GroupPath = "global" | "global.cni" | "tulled.sidecarInjectorWebhook";

/** `tulled.replicaCount`. */
export type LeafPath = Paths<typeof valueTable>;

export function isLeaf(entry: Leaf | Group): entry is Leaf {
  return typeof entry["type"] === "string" && typeof entry["description"] === "string";
}

export function defaultsOf(group: Group): Fields {
  return Object.fromEntries(
    Object.entries(group).map(([name, entry]) => [name, isLeaf(entry) ? entry.default : defaultsOf(entry)]),
  );
}
