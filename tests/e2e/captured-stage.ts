// Two pods whose connections the kernel leads through their sidecars: started as root, it lets unmodified programs of
// the one call the other, and prints what came of it as JSON.
import { CapturedMesh } from "../tools/captured-mesh.ts";
import { testCertificate } from "../tools/certificates.ts";
import type { ProxyKind } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";
import { capturedCalls, type CapturedOutcome, strictCalls } from "./captured-calls.ts";

const services = `
apiVersion: v1
kind: Service
metadata: { name: server, namespace: shop }
spec:
  clusterIP: 10.96.0.5
  clusterIPs: [10.96.0.5, "fd96::5"]
  selector: { app: server }
  ports:
    - { name: http, port: 80, targetPort: 8080 }
    - { name: unnamed, port: 9000, targetPort: 8080 }
    - { name: tcp-mail, port: 25, targetPort: 2525 }
    - { name: tls, port: 443, targetPort: 8443 }
---
apiVersion: v1
kind: Pod
metadata: { name: server, namespace: shop, labels: { app: server, security.istio.io/tlsMode: istio } }
spec: { serviceAccountName: server, containers: [{ name: app }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: server, namespace: shop, labels: { kubernetes.io/service-name: server } }
addressType: IPv4
ports: [{ name: http, port: 8080 }, { name: unnamed, port: 8080 }, { name: tcp-mail, port: 2525 }, { name: tls, port: 8443 }]
endpoints: [{ addresses: [10.88.0.2], targetRef: { kind: Pod, name: server, namespace: shop } }]
---
apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata: { name: secure, namespace: shop }
spec:
  hosts: [server.shop.svc.cluster.local, secure.test]
  tls:
    - match: [{ port: 443, sniHosts: [secure.test] }]
      route: [{ destination: { host: server, port: { number: 443 } } }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: shop }
spec:
  hosts: [web.internal]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 8000, name: http, protocol: HTTP, targetPort: 8080 }]
  workloadSelector: { labels: { machine: web } }
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: web-1, namespace: shop, labels: { machine: web } }
spec: { address: 10.88.0.2, serviceAccount: server }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: mail, namespace: shop }
spec:
  hosts: [mail.internal]
  location: MESH_INTERNAL
  resolution: DNS
  ports: [{ number: 25, name: mail, protocol: TCP, targetPort: 2525 }]
  endpoints: [{ address: 10.88.0.2, serviceAccount: server }]
`;
const strict = `
---
apiVersion: security.tulle.io/v1
kind: PeerAuthentication
metadata: { name: default, namespace: shop }
spec: { mtls: { mode: STRICT } }
`;

const app = new URL("./captured-app.ts", import.meta.url).pathname;
const [clientProxy, serverProxy] = process.argv.slice(2) as [ProxyKind, ProxyKind];
await using mesh = await CapturedMesh.open(services);
const client = await mesh.addPod("client", ["10.88.0.1", "fd88::1"]);
const server = await mesh.addPod("server", ["10.88.0.2", "fd88::2", "10.88.0.9"]);
const { key, certificate } = await testCertificate({ names: ["DNS:secure.test"] });
await (await mesh.start(server, [process.execPath, app, key, certificate])).waitForOutput(/^listens$/m);
await mesh.startProxy(client, clientProxy);
await mesh.startProxy(server, serverProxy);

/** Standard output, or how it failed. */
async function call(command: string): Promise<string> {
  const result = await client.network.run("sh", "-c", command);
  return result.code === 0 ? result.stdout.trim() : "failed";
}
async function outcomesOf(calls: typeof capturedCalls): Promise<CapturedOutcome> {
  const outcomes: Record<string, string> = {};
  for (const { name, command } of calls) outcomes[name] = await call(command);
  return outcomes;
}
const permissive = await outcomesOf(capturedCalls);
await mesh.setManifests(services + strict);
await mesh.settled();
const [, plain] = strictCalls;
await waitFor(async () => (await call(plain!.command)) === plain!.expected, { what: "plain text to be refused" });
const outcome = { ...permissive, ...(await outcomesOf(strictCalls)) };
process.stdout.write(`${JSON.stringify(outcome)}\n`);
