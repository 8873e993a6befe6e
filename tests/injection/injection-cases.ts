// Pods and what differs in each: the table behind the golden files, which a real API server takes as well. A case is a
// pod in YAML over `plainPod`, with what the mesh's operator has chosen.
import type { InjectionRequest, InjectionValues } from "@tulle/kubernetes";

export interface InjectionCase {
  /** Of its file in `golden/`, too. */
  readonly name: string;
  readonly metadata?: string;
  /** Laid over the plain pod's spec, field by field. */
  readonly spec?: string;
  readonly values?: Partial<InjectionValues>;
  readonly mesh?: InjectionRequest["mesh"];
  readonly workload?: InjectionRequest["workload"];
  /** The case that its golden difference is to; the first where none is named. */
  readonly like?: string;
}

const plainOne = "plain-container";
const cni = { cni: true } as const;
const restricted = `
  securityContext: { runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
  containers:
  - name: main
    image: app:1
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] }, runAsUser: 1000 }
`;
const annotated = (text: string): string => `annotations: ${text}`;

export const injectionCases: readonly InjectionCase[] = [
  { name: "plain" },
  { name: "of-a-deployment", workload: { apiVersion: "apps/v1", kind: "Deployment", name: "catalog" } },
  {
    name: "of-a-replica-set",
    metadata: `labels: { app: catalog, pod-template-hash: 7d4b9 }
ownerReferences: [{ apiVersion: apps/v1, kind: ReplicaSet, name: catalog-7d4b9, uid: 11111111-1111-1111-1111-111111111111, controller: true }]`,
  },
  {
    name: "of-a-cron-job",
    metadata: `ownerReferences: [{ apiVersion: batch/v1, kind: Job, name: report-29345670, uid: 11111111-1111-1111-1111-111111111111, controller: true }]`,
    spec: "restartPolicy: Never",
  },
  {
    name: "canonical-labels",
    metadata: "labels: { app.kubernetes.io/name: shop, app.kubernetes.io/version: v2, app: other }",
  },
  {
    name: "canonical-labels-of-its-own",
    metadata: "labels: { service.istio.io/canonical-name: mine, service.istio.io/canonical-revision: r7, app: other }",
  },
  { name: "mutual-tls-label-of-its-own", metadata: "labels: { security.istio.io/tlsMode: disabled }" },
  {
    name: "name-of-a-workload-too-long",
    workload: { apiVersion: "apps/v1", kind: "Deployment", name: `${"a".repeat(62)}-bcd` },
  },
  { name: "network", values: { network: "west" } },
  { name: "network-of-its-own", metadata: "labels: { topology.istio.io/network: east }", values: { network: "west" } },
  { name: "revision", values: { revision: "canary", controlPlaneAddress: "tulled-canary.tulle-system.svc:15012" } },
  { name: "hub-and-tag", values: { hub: "registry.example:5000/mesh", tag: "2.0.1", imagePullPolicy: "IfNotPresent" } },
  {
    name: "pull-secrets",
    spec: "imagePullSecrets: [{ name: mine }]",
    values: { imagePullSecrets: ["registry", "mine"] },
  },
  { name: "trust-domain", values: { trustDomain: "corp.example", clusterDomain: "corp.local", clusterId: "east-1" } },
  // The proxy's form
  { name: "plain-container", metadata: annotated(`{ sidecar.istio.io/nativeSidecar: "false" }`) },
  { name: "plain-container-by-values", like: plainOne, values: { nativeSidecar: false } },
  {
    name: "native-against-values",
    metadata: annotated(`{ sidecar.tulle.io/nativeSidecar: "true" }`),
    values: { nativeSidecar: false },
  },
  {
    name: "plain-container-without-hold",
    like: plainOne,
    metadata: annotated(`
  sidecar.istio.io/nativeSidecar: "false"
  proxy.istio.io/config: "holdApplicationUntilProxyStarts: false"`),
  },
  {
    name: "plain-container-of-a-job",
    like: plainOne,
    metadata: annotated(`{ sidecar.istio.io/nativeSidecar: "false" }`),
    spec: "restartPolicy: OnFailure",
  },
  {
    name: "init-containers",
    spec: `initContainers:
- { name: migrate, image: "migrate:1" }
- { name: logs, image: "logs:1", restartPolicy: Always }`,
  },
  {
    name: "init-containers-of-a-plain-one",
    like: plainOne,
    metadata: annotated(`{ sidecar.istio.io/nativeSidecar: "false" }`),
    spec: `initContainers: [{ name: migrate, image: "migrate:1" }]`,
  },
  // Capture
  { name: "cni", values: cni, spec: restricted },
  { name: "cni-plain-container", like: plainOne, values: { ...cni, nativeSidecar: false }, spec: restricted },
  {
    name: "cni-capture-by-values",
    values: { ...cni, capture: { includeOutboundIpRanges: "10.0.0.0/8", excludeInboundPorts: "9100" } },
    spec: restricted,
  },
  { name: "no-capture", metadata: annotated("{ sidecar.istio.io/interceptionMode: NONE }") },
  { name: "tproxy", metadata: annotated("{ sidecar.istio.io/interceptionMode: TPROXY }") },
  { name: "tproxy-by-config", metadata: annotated(`{ proxy.istio.io/config: "interceptionMode: TPROXY" }`) },
  {
    name: "capture-annotations",
    metadata: annotated(`
  traffic.sidecar.istio.io/includeInboundPorts: "8080,9090"
  traffic.sidecar.istio.io/excludeInboundPorts: "9100"
  traffic.sidecar.istio.io/includeOutboundIPRanges: 10.0.0.0/8
  traffic.sidecar.istio.io/excludeOutboundIPRanges: 10.1.0.0/16
  traffic.sidecar.istio.io/includeOutboundPorts: "443"
  traffic.sidecar.istio.io/excludeOutboundPorts: "25"
  traffic.sidecar.istio.io/excludeInterfaces: eth1
  traffic.sidecar.istio.io/kubevirtInterfaces: k6t0`),
  },
  {
    name: "capture-of-nothing",
    metadata: annotated(
      `{ traffic.sidecar.istio.io/includeInboundPorts: "", traffic.sidecar.istio.io/includeOutboundIPRanges: "" }`,
    ),
  },
  {
    name: "capture-by-values",
    values: { capture: { excludeOutboundIpRanges: "169.254.169.254/32", excludeOutboundPorts: "3306" } },
  },
  {
    name: "virtual-interfaces-by-their-newer-name",
    metadata: annotated(`{ istio.io/reroute-virtual-interfaces: net1 }`),
  },
  {
    name: "without-dns-capture",
    metadata: annotated(`{ proxy.istio.io/config: "proxyMetadata: { ISTIO_META_DNS_CAPTURE: 'false' }" }`),
  },
  // The proxy's container
  {
    name: "resources",
    metadata: annotated(`
  sidecar.istio.io/proxyCPU: 250m
  sidecar.istio.io/proxyCPULimit: "1"
  sidecar.istio.io/proxyMemory: 200Mi
  sidecar.istio.io/proxyMemoryLimit: 300Mi`),
  },
  {
    name: "limit-below-the-request",
    metadata: annotated("{ sidecar.istio.io/proxyCPULimit: 50m, sidecar.istio.io/proxyMemoryLimit: 128Mi }"),
  },
  {
    name: "request-above-the-limit",
    metadata: annotated(`{ sidecar.istio.io/proxyCPU: "4", sidecar.istio.io/proxyMemory: 1Gi }`),
  },
  {
    name: "image",
    metadata: annotated(`{ sidecar.istio.io/proxyImage: "registry.example/proxy:3@sha256:${"ab".repeat(32)}" }`),
  },
  { name: "envoy", metadata: annotated("{ sidecar.tulle.io/proxy: envoy }") },
  { name: "envoy-by-values", values: { proxy: "envoy" } },
  { name: "log-level", metadata: annotated("{ sidecar.istio.io/logLevel: debug }") },
  {
    name: "readiness",
    metadata: annotated(`
  readiness.status.sidecar.istio.io/initialDelaySeconds: "3"
  readiness.status.sidecar.istio.io/periodSeconds: "5"
  readiness.status.sidecar.istio.io/failureThreshold: "10"`),
  },
  {
    name: "config",
    metadata: annotated(`
  proxy.istio.io/config: |
    concurrency: 2
    drainDuration: 30s
    terminationDrainDuration: 20s
    proxyMetadata:
      OTEL_SERVICE_NAME: catalog`),
  },
  {
    name: "metadata-of-the-mesh",
    mesh: { defaultConfig: { proxyMetadata: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" } } },
  },
  {
    name: "user-volumes",
    metadata: annotated(`
  sidecar.istio.io/userVolume: '{"certs":{"secret":{"secretName":"certs","optional":true}},"cache":{"emptyDir":{}}}'
  sidecar.istio.io/userVolumeMount: '{"certs":{"mountPath":"/etc/certs","readOnly":true},"cache":{"mountPath":"/cache"}}'`),
  },
  {
    name: "container-of-its-own",
    spec: `containers:
- name: main
  image: app:1
- name: istio-proxy
  image: auto
  env: [{ name: EXTRA, value: "1" }]
  resources: { limits: { memory: 1Gi } }
  lifecycle: { preStop: { exec: { command: [sleep, "5"] } } }`,
  },
  {
    name: "container-of-its-own-with-an-image",
    like: plainOne,
    spec: `containers:
- { name: tulle-proxy, image: "mine:1", imagePullPolicy: Always }
- { name: main, image: "app:1" }`,
    values: { nativeSidecar: false },
  },
  // Probes
  {
    name: "probes-by-http",
    spec: `containers:
- name: main
  image: app:1
  ports: [{ name: http, containerPort: 8080 }]
  livenessProbe: { httpGet: { path: /live, port: http, httpHeaders: [{ name: X-Probe, value: live }] }, periodSeconds: 5 }
  readinessProbe: { httpGet: { path: /ready, port: 8080, scheme: HTTPS }, timeoutSeconds: 3 }
  startupProbe: { httpGet: { port: "http" } }`,
  },
  {
    name: "probes-by-tcp-and-grpc",
    spec: `containers:
- name: main
  image: app:1
  ports: [{ name: db, containerPort: 5432 }]
  livenessProbe: { tcpSocket: { port: db } }
  readinessProbe: { grpc: { port: 9000, service: ready } }
  startupProbe: { exec: { command: ["true"] } }`,
  },
  {
    name: "probes-of-lifecycle",
    spec: `containers:
- name: main
  image: app:1
  lifecycle:
    postStart: { httpGet: { path: /started, port: 8080 } }
    preStop: { httpGet: { path: /stop, port: 8080, scheme: HTTPS } }`,
  },
  {
    name: "probes-of-two-containers-and-a-native-one",
    spec: `initContainers:
- { name: logs, image: "logs:1", restartPolicy: Always, startupProbe: { httpGet: { path: /logs, port: 7000 } } }
containers:
- { name: a, image: "a:1", readinessProbe: { httpGet: { path: /a, port: 8080 } } }
- { name: b, image: "b:1", readinessProbe: { httpGet: { path: /b, port: 8081 } } }`,
  },
  {
    name: "probes-as-they-are",
    metadata: annotated(`{ sidecar.istio.io/rewriteAppHTTPProbers: "false" }`),
    spec: `containers: [{ name: main, image: "app:1", livenessProbe: { httpGet: { path: /live, port: 8080 } } }]`,
  },
  {
    name: "probe-of-another-host",
    spec: `containers: [{ name: main, image: "app:1", livenessProbe: { httpGet: { path: /live, port: 8080, host: 10.0.0.1 } } }]`,
  },
  {
    name: "probe-of-a-port-without-a-name",
    spec: `containers: [{ name: main, image: "app:1", livenessProbe: { httpGet: { path: /live, port: nowhere } } }]`,
  },
  // Metrics
  {
    name: "metrics",
    metadata: annotated(
      `{ prometheus.io/scrape: "true", prometheus.io/port: "9102", prometheus.io/path: /m, prometheus.io/scheme: https }`,
    ),
  },
  {
    name: "metrics-not-merged",
    metadata: annotated(`{ prometheus.io/port: "9102", prometheus.istio.io/merge-metrics: "false" }`),
  },
  { name: "metrics-not-scraped", metadata: annotated(`{ prometheus.io/scrape: "false" }`) },
  { name: "metrics-by-the-mesh", mesh: { enablePrometheusMerge: false } },
  // Templates
  {
    name: "gateway",
    metadata: `labels: { istio: ingressgateway }
annotations: { inject.istio.io/templates: gateway }`,
    spec: `securityContext: { sysctls: [{ name: net.ipv4.ip_unprivileged_port_start, value: "0" }] }
containers: [{ name: istio-proxy, image: auto, ports: [{ containerPort: 8443, name: https }] }]`,
  },
  {
    name: "gateway-without-a-container-for-it",
    like: "gateway",
    metadata: annotated("{ inject.tulle.io/templates: gateway }"),
  },
  {
    name: "template-of-its-own",
    metadata: annotated(`{ inject.istio.io/templates: "sidecar, audit" }`),
    values: {
      templates: {
        audit: `metadata: { labels: { audited: "yes" } }
spec:
  containers:
  - { name: istio-proxy, env: [{ name: AUDIT, value: "1" }] }
  - { name: audit, image: "audit:1" }
  volumes: [{ name: audit, emptyDir: {} }]`,
      },
    },
  },
  {
    name: "template-alone",
    metadata: annotated("{ inject.istio.io/templates: tolerant }"),
    values: { templates: { tolerant: "spec: { priority: 0 }" } },
  },
  {
    name: "template-by-default",
    values: {
      defaultTemplates: ["sidecar", "label"],
      templates: { label: "metadata: { labels: { meshed: 'true' } }" },
    },
  },
  // Pods of every sort
  { name: "as-no-root", spec: "securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000 }" },
  { name: "without-a-token", spec: "automountServiceAccountToken: false" },
  { name: "with-one-process-space", spec: "shareProcessNamespace: true" },
  {
    name: "with-volumes",
    spec: `volumes: [{ name: data, emptyDir: {} }]
containers: [{ name: main, image: "app:1", volumeMounts: [{ name: data, mountPath: /data }] }]`,
  },
  {
    name: "with-ports",
    spec: `containers:
- { name: main, image: "app:1", ports: [{ name: http, containerPort: 8080 }, { containerPort: 53, protocol: UDP }] }
- { name: side, image: "side:1", ports: [{ containerPort: 9102 }] }`,
  },
  {
    name: "default-container-of-its-own",
    metadata: annotated("{ kubectl.kubernetes.io/default-container: side }"),
    spec: `containers: [{ name: main, image: "app:1" }, { name: side, image: "side:1" }]`,
  },
  {
    name: "port-of-the-proxy",
    spec: `containers: [{ name: main, image: "app:1", ports: [{ containerPort: 15020 }] }]`,
  },
  {
    name: "user-of-the-proxy",
    spec: `containers: [{ name: main, image: "app:1", securityContext: { runAsUser: 1337 } }]`,
  },
  {
    name: "status-that-is-not-true",
    metadata: annotated(`{ sidecar.istio.io/status: '{"containers":["tulle-proxy"]}' }`),
  },
];
