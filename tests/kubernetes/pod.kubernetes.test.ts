// What runs in and beside a pod of the mesh, on two nodes: capture by the init container, the agent beside the
// application, and the kubelet's probes by way of it. The control plane is a process beside the cluster; pods are made
// by the injector, as the webhook makes them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { customResourceDefinitions, defaultValues } from "@tulle/kubernetes";
import { nodes, outside } from "../tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { Mesh } from "../tools/cluster/mesh-pods.ts";
import { startTulled } from "../tools/cluster/tulled.ts";
import { testCertificate } from "../tools/certificates.ts";
import { waitFor } from "../tools/processes.ts";

const namespace = "pods";
const xdsAddress = `${outside[0]}:15012`;
const mesh = new Mesh(namespace, { ...defaultValues("0.1.0"), controlPlaneAddress: xdsAddress });
const [one, two] = nodes;

const namespaceObject = (name: string, labels: object = {}): object => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

const cleanUp = new AsyncDisposableStack();

before(async () => {
  await applyObjects([
    ...customResourceDefinitions(),
    namespaceObject("tulle-system"),
    namespaceObject(namespace, { "tulle-injection": "enabled" }),
  ]);
  await kubectl(["wait", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--for=condition=Established"]);
  await startTulled(
    { after: (end) => cleanUp.defer(async () => void (await end())) },
    { name: "tulled", args: ["--xds-tls", xdsAddress] },
  );
  await applyObjects([
    mesh.strictMutualTls(),
    mesh.service("server", 80, 8080),
    mesh.pod("server", { node: two.name, program: server, container: serverProbes }),
    mesh.pod("client", { node: one.name, program: idle }),
    mesh.pod("bare", { node: one.name, program: idle, labels: { "sidecar.tulle.io/inject": "false" } }),
  ]);
  await kubectl(["wait", "-n", namespace, "pod", "--all", "--for=condition=Ready", "--timeout=90s"]);
});
after(async () => {
  await cleanUp.disposeAsync();
  await deleteNamespace(namespace);
  await kubectl(["delete", "namespace", "tulle-system"]);
});

/** Tells who called, as its proxy knows it; another port speaks HTTPS, another gRPC's health, another only TCP. */
const server = `
const http = require("node:http"), http2 = require("node:http2"), net = require("node:net");
const asked = {};
http.createServer((request, response) => {
  const { "x-forwarded-client-cert": by = "nobody", "user-agent": agent } = request.headers;
  if (request.url.startsWith("/probe")) asked[request.url] = agent;
  if (request.url === "/asked") return response.end(JSON.stringify(asked));
  response.end(JSON.stringify({ by, from: request.socket.remoteAddress }));
}).listen(8080, "::");
net.createServer((socket) => socket.end()).listen(8081, "::");
http2.createServer().on("stream", (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
}).listen(8082, "::");
// Callers learn of its end while it ends: it serves on for a while, as every application of Kubernetes has to.
process.on("SIGTERM", () => setTimeout(() => process.exit(0), 3000));
`;
const nobody = await testCertificate({ commonName: "nobody" });
/** Well until there is a file. */
const tlsServer = `
const { certificate: cert, key } = ${JSON.stringify(nobody)};
require("node:https").createServer({ cert, key }, (request, response) => {
  const isWell = request.headers["x-a"] === "b" && !require("node:fs").existsSync("/tmp/ill");
  response.writeHead(isWell ? 200 : 500).end();
}).listen(8443, "::");
process.on("SIGTERM", () => process.exit(0));
`;
/** 200 requests a second, counted. */
const caller = `
const count = { good: 0, bad: [] };
require("node:http").createServer((request, response) => response.end(JSON.stringify(count))).listen(9000, "127.0.0.1");
setInterval(() => fetch("http://pair/").then(
  async (answer) => (await answer.text(), answer.ok ? count.good++ : count.bad.push(new Date().toISOString() + " " + answer.status)),
  (error) => count.bad.push(new Date().toISOString() + " " + (error.cause ?? error).message),
), 5);
`;
const idle = `process.on("SIGTERM", () => process.exit(0)); setInterval(() => undefined, 1e6);`;

const serverProbes = {
  ports: [{ name: "http", containerPort: 8080 }],
  startupProbe: { httpGet: { path: "/probe/startup", port: "http" }, periodSeconds: 1, failureThreshold: 30 },
  readinessProbe: { grpc: { port: 8082 }, periodSeconds: 1 },
  livenessProbe: { tcpSocket: { port: 8081 }, periodSeconds: 1 },
};

interface Seen {
  readonly by: string;
  readonly from: string;
}

const call = async (pod: string, url: string): Promise<Seen> => JSON.parse(await mesh.fetchFrom(pod, url)) as Seen;

test("a call by name and by both ClusterIPs goes over mutual TLS to the other node", async () => {
  const addresses = (await mesh.fieldOf("service/server", "{.spec.clusterIPs[*]}")).split(" ");
  assert.equal(addresses.length, 2, addresses.join());
  const hosts = ["server", ...addresses.map((each) => (each.includes(":") ? `[${each}]` : each))];
  for (const host of hosts) {
    const { by } = await call("client", `http://${host}/`);
    assert.match(by, /URI=spiffe:\/\/cluster\.local\/ns\/pods\/sa\/default/, host);
  }
  for (const host of hosts) await assert.rejects(mesh.fetchFrom("bare", `http://${host}/`), host);
});

test("probes of each kind reach the application through its agent, where mutual TLS is a must", async () => {
  const asked = JSON.parse(await mesh.fetchFrom("client", "http://server/asked")) as Readonly<Record<string, string>>;
  assert.match(asked["/probe/startup"] ?? "", /^kube-probe\//);
  const events = await kubectl(["get", "events", "-n", namespace, "--field-selector=reason=Unhealthy", "-o", "name"]);
  const restarts = await mesh.fieldOf("pod/server", "{.status.containerStatuses[*].restartCount}");
  assert.equal(restarts, "0", events);
  // HTTPS: a certificate that nobody has signed. Broken, and the pod is taken out of its Service.
  await applyObjects([
    mesh.pod("tls", {
      program: tlsServer,
      container: {
        readinessProbe: {
          httpGet: { path: "/ready", port: 8443, scheme: "HTTPS", httpHeaders: [{ name: "X-A", value: "b" }] },
          periodSeconds: 1,
        },
      },
    }),
  ]);
  await mesh.ready("tls");
  await mesh.run("tls", "fs.writeFileSync('/tmp/ill', '')");
  await kubectl(["wait", "-n", namespace, "pod/tls", "--for=condition=Ready=false", "--timeout=90s"]);
});

test("names are answered by the agent, and what it does not know by the cluster's own name server", async () => {
  const lookUp = `require("node:dns").promises.lookup(process.argv[1], { all: true }).then((all) => console.log(JSON.stringify(all)))`;
  const known = await mesh.run("client", lookUp.replace("process.argv[1]", '"server.pods"'));
  assert.equal((JSON.parse(known) as readonly unknown[]).length, 2, known);
  const foreign = await mesh.run(
    "client",
    lookUp.replace("process.argv[1]", '"kube-dns.kube-system.svc.cluster.local"'),
  );
  assert.match(foreign, /10\.96\.0\.10/);
  const metrics = await mesh.fetchFrom("client", "http://localhost:15020/stats/prometheus");
  assert.match(metrics, /^dns_requests_total [1-9]/m);
});

test("a proxy that ends by itself is started again, and the application goes on", async () => {
  await mesh.run("client", "process.kill(1, 'SIGTERM')", "tulle-proxy");
  await waitFor(
    async () =>
      (await mesh.fieldOf("pod/client", "{.status.initContainerStatuses[?(@.name=='tulle-proxy')].restartCount}")) ===
      "1",
    { what: "the proxy to start again" },
  );
  await mesh.ready("client");
  const { by } = await waitFor(() => call("client", "http://server/").catch(() => undefined), { what: "an answer" });
  assert.match(by, /spiffe:/);
});

for (const kind of ["native", "plain"] as const) {
  test(`a Job with a ${kind} sidecar calls the mesh, and completes`, async () => {
    const last = kind === "native" ? "" : `await fetch("http://localhost:15020/quitquitquit", { method: "POST" });`;
    const program = `(async () => {
      const { by } = await (await fetch("http://server/")).json();
      if (!by.includes("spiffe:")) process.exit(1);
      ${last}
    })()`;
    const annotations = kind === "native" ? {} : { "sidecar.istio.io/nativeSidecar": "false" };
    const template = mesh.template(`job-${kind}`, { program, annotations, spec: { restartPolicy: "Never" } });
    const job = { backoffLimit: 0, template };
    await applyObjects([{ apiVersion: "batch/v1", kind: "Job", metadata: { name: kind, namespace }, spec: job }]);
    await kubectl(["wait", "-n", namespace, `job/${kind}`, "--for=condition=Complete", "--timeout=90s"]);
  });
}

test("pods are ended under load, and no request is lost", async () => {
  const pairs = nodes.map(({ name }) => `pair-${name}`);
  await applyObjects([
    mesh.service("pair", 80, 8080),
    ...nodes.map(({ name }) => mesh.pod(`pair-${name}`, { node: name, program: server, labels: { app: "pair" } })),
  ]);
  for (const name of pairs) await mesh.ready(name);
  await applyObjects([mesh.pod("caller", { node: one.name, program: caller })]);
  await mesh.ready("caller");
  const count = async (): Promise<Count> =>
    JSON.parse(await mesh.fetchFrom("caller", "http://127.0.0.1:9000/")) as Count;
  await waitFor(async () => (await count()).good > 500, { what: "calls" });
  // Calls from before its proxy had heard of the two are none of the matter.
  const earlier = (await count()).bad.length;
  await kubectl(["delete", "pod", "-n", namespace, `pair-${two.name}`]);
  const { good } = await count();
  await waitFor(async () => (await count()).good > good + 500, { what: "calls to the other one" });
  assert.deepEqual((await count()).bad.slice(earlier), []);
});

interface Count {
  readonly good: number;
  readonly bad: readonly string[];
}
