// Pods of a Service without an address, dialled by their own names where connections are captured: with both proxies at
// both ends, under STRICT and policies by principal, in a mesh that leads nowhere else.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CapturedMesh, type CapturedPod } from "../tools/captured-mesh.ts";
import { debianTool } from "../tools/debian-tool.ts";
import type { ProxyKind } from "../tools/meshed-proxies.ts";
import { waitFor } from "../tools/processes.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];

/** Speaks HTTP at the first two ports, and answers anything at the third one. */
const database = `
  const { createServer } = require("node:http");
  const at = ({ localAddress, localPort }) => localAddress.replace("::ffff:", "") + " " + localPort;
  for (const port of [6432, 8080])
    createServer(({ socket }, response) => response.end(at(socket))).listen(port, () => console.log("listens"));
  require("node:net").createServer((socket) => socket.on("error", () => {}).once("data", () => socket.end(at(socket))))
    .listen(7000, () => console.log("listens"));`;

interface DatabasePod {
  readonly name: string;
  readonly ips: readonly [string, string];
  /** Undefined = it has none, and takes plain text alone. */
  readonly proxy?: ProxyKind;
}

const pods: readonly DatabasePod[] = [
  { name: "database-0", ips: ["10.88.2.1", "fd88::21"], proxy: "tulle" },
  { name: "database-1", ips: ["10.88.2.2", "fd88::22"], proxy: "envoy" },
  { name: "database-2", ips: ["10.88.2.3", "fd88::23"] },
];
const labels = { app: "database" };

/** What its server answered; nothing where the connection was closed. */
async function ask({ network }: CapturedPod, host: string, address: string, port: number): Promise<string> {
  const name = `${host}.shop.svc.cluster.local`;
  const resolved = `${name}:${port}:${address}`;
  if (port === 7000) {
    const command = `printf 'PING\\n' | curl -sg --resolve '${resolved}' telnet://${name}:${port}`;
    return (await network.run("sh", "-c", command)).stdout;
  }
  return (await network.run("curl", "-sg", "--resolve", resolved, `http://${name}:${port}/`)).stdout;
}

describe("captured connections to pods of a headless Service", () => {
  const open = new AsyncDisposableStack();
  const clients = new Map<ProxyKind, CapturedPod>();
  const databases: CapturedPod[] = [];
  let mesh: CapturedMesh;
  let stranger: CapturedPod;

  before(
    async () => {
      await debianTool("curl");
      mesh = open.use(await CapturedMesh.open(manifests(pods.slice(0, -1))));
      for (const { name, ips, proxy } of pods) {
        const pod = await mesh.addPod(name, ips, labels);
        databases.push(pod);
        await (await mesh.start(pod, [process.execPath, "-e", database], name)).waitForOutput(/^(listens\n){3}$/m);
        if (proxy !== undefined) await mesh.startProxy(pod, proxy);
      }
      for (const [index, kind] of kinds.entries()) {
        const pod = await mesh.addPod(`client-${kind}`, [`10.88.1.${index + 1}`, `fd88::1${index}`]);
        clients.set(kind, pod);
        await mesh.startProxy(pod, kind);
      }
      stranger = await mesh.addPod("stranger", ["10.88.1.9", "fd88::19"]);
      await mesh.startProxy(stranger, "tulle");
      await mesh.settled();
    },
    { timeout: 240_000 },
  );
  after(() => open.disposeAsync());

  for (const kind of kinds) {
    for (const { name, ips, proxy } of pods.slice(0, -1)) {
      test(`${kind} leads ${name} by its name to that pod's ${proxy}, under the client's identity`, async () => {
        for (const address of ips)
          assert.equal(await ask(clients.get(kind)!, `${name}.database`, address, 6432), `${address} 6432`);
      });

      test(`${kind}: what is no request goes there at a port whose protocol is not named`, async () => {
        assert.equal(await ask(clients.get(kind)!, `${name}.database`, ips[0], 7000), `${ips[0]} 7000`);
      });

      test(`${kind}: requests by the pod's name go there, too`, async () => {
        for (const address of ips) {
          for (const host of [`${name}.database`, `${address.replaceAll(/[.:]+/g, "-")}.database`])
            assert.equal(await ask(clients.get(kind)!, host, address, 8080), `${address} 8080`);
        }
        const { stdout } = await clients
          .get(kind)!
          .network.run("curl", "-sg", "-H", `host: ${name}.database`, `http://${ips[0]}:8080/`);
        assert.equal(stdout, `${ips[0]} 8080`, "a short name");
      });

      test(`${kind}: the Service's name leads where the client wants, too`, async () => {
        assert.equal(await ask(clients.get(kind)!, "database", ips[0], 6432), `${ips[0]} 6432`);
      });
    }
  }

  for (const { name, ips } of pods.slice(0, -1)) {
    test(`${name} refuses whom its policy does not name`, async () => {
      for (const port of [6432, 7000]) assert.equal(await ask(stranger, `${name}.database`, ips[0], port), "");
      assert.equal(await ask(stranger, `${name}.database`, ips[0], 8080), "RBAC: access denied");
    });
  }

  test("a pod that comes later is found, and spoken to in plain text where it has no proxy", async () => {
    const [, , last] = pods;
    const { name, ips } = last!;
    for (const client of clients.values()) assert.equal(await ask(client, `${name}.database`, ips[0], 6432), "");
    await mesh.setManifests(manifests(pods));
    await mesh.settled();
    for (const client of clients.values())
      await waitFor(async () => (await ask(client, `${name}.database`, ips[0], 6432)) === `${ips[0]} 6432`, {
        what: `an answer of ${name}`,
      });
    assert.equal(await ask(clients.get("tulle")!, "database-0.database", pods[0]!.ips[0], 6432), "10.88.2.1 6432");
  });

  test("the clients' sidecars count connections as the Service's", async () => {
    for (const takes of ["outbound-pod", "outbound-pod-plain"]) {
      for (const client of clients.values()) {
        const name = `cluster.${takes}|5432||database.shop.svc.cluster.local.upstream_cx_total`;
        const lines = await adminLines(client, "stats");
        assert.match(lines.find((line) => line.startsWith(`${name}: `)) ?? "", /: [1-9]/, `${client.name} ${name}`);
      }
    }
    const opened = (await adminLines(clients.get("tulle")!, "stats/prometheus")).filter((line) =>
      line.startsWith("istio_tcp_connections_opened_total{"),
    );
    const names = opened.map((line) => /destination_service="([^"]*)"/.exec(line)?.[1]);
    assert.ok(names.includes("database.shop.svc.cluster.local"), names.join());
  });
});

async function adminLines({ network }: CapturedPod, page: string): Promise<readonly string[]> {
  return (await network.run("curl", "-s", `http://127.0.0.1:15000/${page}`)).stdout.split("\n");
}

function manifests(listed: readonly DatabasePod[]): string {
  const slice = (family: 0 | 1) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `database-${family}`, namespace: "shop", labels: { "kubernetes.io/service-name": "database" } },
    addressType: family === 0 ? "IPv4" : "IPv6",
    ports: [
      { name: "tcp-sql", port: 6432 },
      { name: "peers", port: 7000 },
      { name: "http-web", port: 8080 },
    ],
    endpoints: listed.map(({ name, ips }) => ({
      addresses: [ips[family]],
      hostname: name,
      targetRef: { kind: "Pod", name, namespace: "shop" },
    })),
  });
  const resources = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "istio", namespace: "istio-system" },
      data: { mesh: JSON.stringify({ outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } }) },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "database", namespace: "shop" },
      spec: {
        clusterIP: "None",
        selector: labels,
        ports: [
          { name: "tcp-sql", port: 5432, targetPort: 6432 },
          { name: "peers", port: 7000 },
          { name: "http-web", port: 8000, targetPort: 8080 },
        ],
      },
    },
    ...listed.map(({ name, proxy }) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        namespace: "shop",
        labels: { ...labels, ...(proxy === undefined ? {} : { "security.istio.io/tlsMode": "istio" }) },
      },
      spec: { serviceAccountName: name, containers: [{ name: "app" }] },
    })),
    slice(0),
    slice(1),
    {
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: "shop" },
      spec: { mtls: { mode: "STRICT" } },
    },
    {
      apiVersion: "security.istio.io/v1",
      kind: "AuthorizationPolicy",
      metadata: { name: "database", namespace: "shop" },
      spec: {
        selector: { matchLabels: labels },
        rules: [{ from: [{ source: { principals: kinds.map((kind) => `cluster.local/ns/shop/sa/client-${kind}`) } }] }],
      },
    },
  ];
  return resources.map((each) => JSON.stringify(each)).join("\n---\n");
}
