// Two pods, each a network namespace with an application and a sidecar, where the kernel leads all connections through
// the sidecars: started as root, it lets unmodified programs of the one call the other, and prints what came of it as
// JSON. The control plane's own stages say what the sidecars get, over Unix sockets.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints, buildSnapshot, parseNode, scope, TranslationCache } from "@tulle/control-plane/stages";
import { type AdsConnection, serveAds } from "@tulle/xds";
import { testCertificate } from "../tools/certificates.ts";
import { envoyPath } from "../tools/envoy-path.ts";
import { NetworkNamespace } from "../tools/network-namespace.ts";
import { startProcess, waitFor } from "../tools/processes.ts";
import { resourcesFrom, serveSecrets, TestAuthority, workloadSecrets } from "../tools/workload-secrets.ts";
import { capturedCalls, type CapturedOutcome, strictCalls } from "./captured-calls.ts";

interface Pod {
  readonly name: string;
  readonly proxy: string;
  readonly ips: readonly string[];
  readonly network: NetworkNamespace;
}

/** What a sidecar's own connections are known by. */
const proxyGroup = 1337;
const rules = `
table inet captured {
  chain output {
    type nat hook output priority -100;
    meta skgid ${proxyGroup} return
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp redirect to :15001
  }
  chain prerouting {
    type nat hook prerouting priority -100;
    meta l4proto tcp redirect to :15006
  }
}
`;
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

const types = ["CDS", "EDS", "LDS", "RDS"] as const;
const cli = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
const app = new URL("./captured-app.ts", import.meta.url).pathname;

/** Nothing but capture knows where a Service's address is: the way there leads to the other pod, which has it not. */
async function connectPods(client: Pod, server: Pod): Promise<void> {
  await client.network.connect(server.network, "eth");
  for (const [pod, other] of [
    [client, server],
    [server, client],
  ] as const) {
    const ip = (...args: readonly string[]): Promise<string> => pod.network.mustRun("ip", ...args);
    for (const each of pod.ips) {
      const length = each.includes(":") ? 64 : 24;
      await ip("address", "add", `${each}/${length}`, "dev", "eth", ...(length === 64 ? ["nodad"] : []));
    }
    await ip("-6", "address", "add", "::6/128", "dev", "lo", "preferred_lft", "0");
    await ip("route", "add", "default", "via", other.ips[0]!);
    await ip("-6", "route", "add", "default", "via", other.ips[1]!);
    await pod.network.mustRun("nft", rules);
  }
}

function bootstrapOf({ name, ips }: Pod, xdsPath: string, sdsPath: string): unknown {
  return {
    node: {
      id: `sidecar~${ips[0]}~${name}.shop~shop.svc.cluster.local`,
      cluster: `${name}.shop`,
      metadata: {
        NAMESPACE: "shop",
        INTERCEPTION_MODE: "REDIRECT",
        INSTANCE_IPS: ips.join(),
        LABELS: { app: name },
      },
    },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 15_000 } } },
    ...resourcesFrom(xdsPath, sdsPath),
  };
}

const [, , clientProxy = "", serverProxy = ""] = process.argv;
await using open = new AsyncDisposableStack();
const folder = await mkdtemp(path.join(tmpdir(), "tulle-captured-"));
open.defer(() => rm(folder, { recursive: true, force: true }));
const newPod = async (name: string, proxy: string, ips: readonly string[]): Promise<Pod> => ({
  name,
  proxy,
  ips,
  network: open.use(await NetworkNamespace.create()),
});
const client = await newPod("client", clientProxy, ["10.88.0.1", "fd88::1"]);
const server = await newPod("server", serverProxy, ["10.88.0.2", "fd88::2", "10.88.0.9"]);
await connectPods(client, server);

const authority = await TestAuthority.create();
const cache = new TranslationCache("local");
const connections = new Set<AdsConnection>();
let store = new MemoryStore();
function declare(connection: AdsConnection): void {
  const parsed = parseNode(connection.node);
  assert.ok("proxy" in parsed);
  const snapshot = buildSnapshot(store, { trustDomain: authority.trustDomain });
  const endpoints = buildEndpoints(store, snapshot);
  const resources = cache.resources(scope(snapshot, parsed.proxy, endpoints), endpoints);
  for (const type of types) connection.set(type, resources[type]);
}
async function setManifests(text: string): Promise<void> {
  const { resources, findings } = loadText(text, "mesh.yaml");
  assert.deepEqual(
    findings.filter(({ severity }) => severity === "error"),
    [],
  );
  store = new MemoryStore();
  await store.applyAll(resources);
  for (const connection of connections) declare(connection);
}
await setManifests(services);
const xdsPath = path.join(folder, "xds.sock");
const ads = await serveAds({
  address: { path: xdsPath },
  handlers: {
    onConnect: (connection) => {
      connections.add(connection);
      declare(connection);
    },
    onSubscribe: () => undefined,
    onDisconnect: (connection) => void connections.delete(connection),
  },
});
open.defer(() => ads.close());

const { key, certificate } = await testCertificate({ names: ["DNS:secure.test"] });
const [enter, ...inServer] = [...server.network.enter, process.execPath, app, key, certificate];
await open.use(await startProcess(enter, inServer, { name: "the application" })).waitForOutput(/^listens$/m);

for (const pod of [client, server]) {
  const sdsPath = path.join(folder, `${pod.name}.sock`);
  const secrets = await serveSecrets(sdsPath, workloadSecrets(await authority.issue("shop", pod.name)));
  open.defer(() => secrets.close());
  const bootstrap = path.join(folder, `${pod.name}.json`);
  await writeFile(bootstrap, JSON.stringify(bootstrapOf(pod, xdsPath, sdsPath)));
  const program =
    pod.proxy === "tulle"
      ? [process.execPath, cli, "proxy", "-c", bootstrap, "-l", "warning"]
      : [await envoyPath(), "-c", bootstrap, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"];
  const asProxy = ["setpriv", `--regid=${proxyGroup}`, "--clear-groups"];
  const [command = "", ...args] = [...pod.network.enter, ...asProxy, ...program];
  const env = { TULLE_PEER_METADATA: `of ${pod.name}` };
  const started = open.use(await startProcess(command, args, { name: `${pod.proxy} of ${pod.name}`, env }));
  const isReady = async (): Promise<boolean> =>
    (await pod.network.run("curl", "-fs", "http://127.0.0.1:15000/ready")).code === 0;
  await waitFor(isReady, {
    what: `the proxy of ${pod.name}`,
    details: () => JSON.stringify(ads.connections.flatMap((each) => [...each.status().entries()])) + started.output(),
  });
}

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
await setManifests(services + strict);
const isSettled = (): boolean =>
  [...connections].every((each) => [...each.status().values()].every(({ state }) => state !== "STALE"));
await waitFor(isSettled, { what: "STRICT at both" });
const [, plain] = strictCalls;
await waitFor(async () => (await call(plain!.command)) === plain!.expected, { what: "plain text to be refused" });
const outcome = { ...permissive, ...(await outcomesOf(strictCalls)) };
process.stdout.write(`${JSON.stringify(outcome)}\n`);
