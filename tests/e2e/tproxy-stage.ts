// A workload whose sidecar takes connections in TPROXY mode, and who calls it: another sidecar's workload by mutual
// TLS, and a machine without one. Prints whom the application saw, as JSON.
import http from "node:http";
import net from "node:net";
import { CapturedMesh, type CapturedPod } from "../tools/captured-mesh.ts";
import type { ProxyKind } from "../tools/meshed-proxies.ts";
import { tproxyCalls } from "./tproxy-calls.ts";

const ports = [
  { name: "http", port: 80, targetPort: 8080 },
  { name: "tcp-mail", port: 25, targetPort: 2525 },
];
const ips = { client: ["10.88.0.1", "fd88::1"], server: ["10.88.0.2", "fd88::2"], plain: ["10.88.0.3", "fd88::3"] };
const serviceOf = (name: string, clusterIP: string, address: string): object[] => [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace: "shop" },
    spec: { clusterIP, selector: { app: "server" }, ports },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": name } },
    addressType: address.includes(":") ? "IPv6" : "IPv4",
    ports: ports.map(({ name: port, targetPort }) => ({ name: port, port: targetPort })),
    endpoints: [{ addresses: [address], targetRef: { kind: "Pod", name: "server", namespace: "shop" } }],
  },
];
const manifests = [
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "server", namespace: "shop", labels: { app: "server", "security.istio.io/tlsMode": "istio" } },
    spec: { serviceAccountName: "server", containers: [{ name: "app" }] },
  },
  ...serviceOf("four", "10.96.0.4", ips.server[0]!),
  ...serviceOf("six", "fd96::6", ips.server[1]!),
]
  .map((each) => JSON.stringify(each))
  .join("\n---\n");

const [clientProxy, serverProxy] = process.argv.slice(2) as [ProxyKind, ProxyKind];
await using mesh = await CapturedMesh.open(manifests);
const client = await mesh.addPod("client", ips.client);
const server = await mesh.addPod("server", ips.server);
const plain = await mesh.addPod("plain", ips.plain);
const seen = ({ remoteAddress }: net.Socket): string => `seen ${remoteAddress?.replace("::ffff:", "")}`;
const web = (): net.Server => http.createServer(({ socket }, response) => response.end(seen(socket)));
const mail = net.createServer((socket) => socket.on("error", () => undefined).end(`220 ${seen(socket)}\r\n`));
server.network.within(() => {
  web().listen(8080).unref();
  web().listen(8081).unref();
  mail.listen(2525).unref();
});
await mesh.startProxy(server, serverProxy, { mode: "TPROXY" });
await mesh.startProxy(client, clientProxy);
const pods: Readonly<Record<"client" | "plain" | "server", CapturedPod>> = { client, plain, server };
const outcome: Record<string, string> = {};
for (const { name, from, command } of tproxyCalls) {
  const result = await pods[from].network.run("sh", "-c", command);
  outcome[name] = result.code === 0 ? result.stdout.trim() : `failed: ${result.stderr.trim()}`;
}
process.stdout.write(`${JSON.stringify(outcome)}\n`);
