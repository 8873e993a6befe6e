// A pod that machines call and that calls them, and the east-west gateway between their networks.
import { meshAddress } from "./machine-stage.ts";

/** Tells who it is, and as whom its callers have come. */
const program = `
  require("node:http").createServer((request, response) => {
    response.end(JSON.stringify({ name: "hello", xfcc: request.headers["x-forwarded-client-cert"] }));
  }).listen(process.env.PORT, process.env.HOST);
`;

const system = "tulle-system";
const controlPlaneHost = "tulled.tulle-system.svc.cluster.local";

export const podManifests = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", labels: { "tulle-injection": "enabled" } } },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "hello", namespace: "shop" },
    spec: { selector: { app: "hello" }, ports: [{ name: "http", port: 80, targetPort: 8000 }] },
  },
  deployment("shop", "hello", {
    labels: { app: "hello", "topology.istio.io/network": "pods" },
    annotations: { "local.tulle.io/command.hello": JSON.stringify(["node", "-e", program]) },
    containers: [{ name: "hello", ports: [{ containerPort: 8000 }] }],
  }),
  {
    apiVersion: "security.istio.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "default", namespace: "shop" },
    spec: { mtls: { mode: "STRICT" } },
  },
]
  .map(textOf)
  .join("");

/** Published at the mesh's own address. It leads to workloads, and where that is asked to the control plane. */
export function eastWestGateway({ leadsToControlPlane }: { readonly leadsToControlPlane: boolean }): string {
  const name = "tulled.tulle-system.svc";
  const toControlPlane = {
    port: { number: 15_012, name: "tls-control-plane", protocol: "TLS" },
    hosts: [name],
    tls: { mode: "PASSTHROUGH" },
  };
  const ports = [15_443, ...(leadsToControlPlane ? [15_012] : [])];
  const resources = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: system } },
    deployment(system, "east-west", {
      labels: { app: "east-west", "tulle.io/inject": "true", "sidecar.tulle.io/inject": "true" },
      annotations: { "inject.tulle.io/templates": "gateway" },
      containers: [{ name: "istio-proxy", ports: ports.map((containerPort) => ({ containerPort })) }],
    }),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: "east-west",
        namespace: system,
        labels: { "topology.istio.io/network": "pods" },
        annotations: {
          "local.tulle.io/publish": ports.map((port) => `${meshAddress}:${port}:${port}`).join(),
        },
      },
      spec: {
        selector: { app: "east-west" },
        externalIPs: [meshAddress],
        ports: ports.map((port) => ({ name: `tls-${port}`, port, targetPort: port })),
      },
    },
    {
      apiVersion: "networking.istio.io/v1",
      kind: "Gateway",
      metadata: { name: "east-west", namespace: system },
      spec: {
        selector: { app: "east-west" },
        servers: [
          {
            port: { number: 15_443, name: "tls", protocol: "TLS" },
            hosts: ["*.local"],
            tls: { mode: "AUTO_PASSTHROUGH" },
          },
          ...(leadsToControlPlane ? [toControlPlane] : []),
        ],
      },
    },
  ];
  const way = [
    {
      apiVersion: "networking.istio.io/v1",
      kind: "ServiceEntry",
      metadata: { name: "control-plane", namespace: system },
      spec: {
        hosts: [controlPlaneHost],
        resolution: "STATIC",
        ports: [{ number: 15_017, name: "tls", protocol: "TLS" }],
        endpoints: [{ address: "172.31.255.1" }],
      },
    },
    {
      apiVersion: "networking.istio.io/v1",
      kind: "VirtualService",
      metadata: { name: "control-plane", namespace: system },
      spec: {
        hosts: [name],
        gateways: ["east-west"],
        tls: [
          {
            match: [{ port: 15_012, sniHosts: [name] }],
            route: [{ destination: { host: controlPlaneHost, port: { number: 15_017 } } }],
          },
        ],
      },
    },
  ];
  return [...resources, ...(leadsToControlPlane ? way : [])].map(textOf).join("");
}

interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly containers: readonly object[];
}

function deployment(namespace: string, name: string, { labels, annotations, containers }: PodTemplate): object {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels, annotations }, spec: { containers } },
    },
  };
}

function textOf(resource: object): string {
  return `---\n${JSON.stringify(resource)}\n`;
}
