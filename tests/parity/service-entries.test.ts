// Hosts of ServiceEntries through both proxies: programs outside of the mesh, by addresses and by names, under a
// VirtualService's rules and behind TLS that the proxy begins; and workloads of the mesh that are no pods.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import { type AddressInfo, connect } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { throughTunnel } from "../tools/through-tunnel.ts";
import { testCertificate } from "../tools/certificates.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { callerOf, callMeshed, type MeshedOutcome } from "./meshed-call.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;
const gatewayPort = 8080;
const appPort = 3000;

const entryOf = (name: string, spec: object, namespace = "shop") => ({
  apiVersion: "networking.istio.io/v1",
  kind: "ServiceEntry",
  metadata: { name, namespace },
  spec: { hosts: [`${name}.example.com`], ...spec },
});

/** As many answers of 503 to a key before the good one. */
const failuresBefore = 2;

/** A program outside of the mesh, which tells what it got. */
function outsideProgram() {
  const failures = new Map<string, number>();
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { url = "", headers } = request;
    if (url.startsWith("/never")) return;
    const failed = failures.get(url) ?? 0;
    if (url.startsWith("/flaky") && failed < failuresBefore) {
      failures.set(url, failed + 1);
      response.writeHead(503, { "content-length": "0" }).end();
      return;
    }
    const body = JSON.stringify({ app: "outside", path: url, headers });
    response
      .writeHead(200, { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) })
      .end(body);
  };
}

describe("hosts of ServiceEntries", () => {
  const open = new AsyncDisposableStack();
  let mesh: MeshedProxies;
  let outside: { readonly plain: number; readonly secure: number; readonly connections: number };

  before(
    async () => {
      const listen = async (server: ReturnType<typeof createServer>): Promise<number> => {
        const { promise, resolve } = Promise.withResolvers<void>();
        server.listen(0, "127.0.0.1", resolve);
        await promise;
        open.defer(async () => {
          server.closeAllConnections();
          await server[Symbol.asyncDispose]();
        });
        return (server.address() as AddressInfo).port;
      };
      const plain = await listen(createServer(outsideProgram()));
      const connections = await listen(createServer(outsideProgram()));
      const { certificate, key } = await testCertificate({
        commonName: "secure.example.com",
        names: ["DNS:secure.example.com", "IP:127.0.0.1"],
      });
      const secure = await listen(https.createServer({ cert: certificate, key }, outsideProgram()));
      const roots = path.join(temporaryFolder("tulle-entries-"), "roots.pem");
      await writeFile(roots, certificate);
      mesh = open.use(
        await MeshedProxies.start({
          pods: kinds.flatMap((proxy) => [
            { name: `client-${proxy}`, namespace: "shop", proxy },
            { name: `server-${proxy}`, namespace: "shop", proxy },
            { name: `edge-${proxy}`, namespace: "shop", proxy, isGateway: true, labels: { role: "edge" } },
          ]),
          ports: [appPort],
          manifests: "",
        }),
      );
      outside = { plain, secure, connections };
      await mesh.setManifests(manifests(mesh, { ...outside, roots }));
      await mesh.settled();
    },
    { timeout: 240_000 },
  );
  after(() => open.disposeAsync());

  const call = (client: ProxyKind, host: string, url = "/"): Promise<MeshedOutcome> =>
    callMeshed({ host: mesh.pod(`client-${client}`).address, port: outboundPort, path: url, headers: { host } });

  for (const kind of kinds) {
    describe(kind, () => {
      for (const name of ["fixed", "named", "logical", "literal", "secure"]) {
        test(`${name}.example.com is reached, and told nothing of who calls`, async () => {
          const outcome = await call(kind, `${name}.example.com`, "/hello");
          assert.equal(statusOf(outcome), 200, JSON.stringify(outcome));
          const echo = outcome.type === "answered" ? outcome.echo : undefined;
          assert.equal(echo?.app, "outside");
          assert.equal(echo.headers["host"], `${name}.example.com`);
          assert.equal(echo.headers["x-envoy-peer-metadata"], undefined);
        });
      }

      test("a host that clients look up themselves is reached by its name, at the entry's ports alone", async () => {
        const outcome = await call(kind, `localhost:${outside.plain}`, "/hello");
        assert.equal(statusOf(outcome), 200, JSON.stringify(outcome));
        const echo = outcome.type === "answered" ? outcome.echo : undefined;
        assert.deepEqual([echo?.app, echo?.headers["x-envoy-peer-metadata"]], ["outside", undefined]);
        assert.equal(statusOf(await call(kind, `localhost:${outside.connections}`)), 404);
        assert.equal(statusOf(await call(kind, `localhost:${appPort}`)), 502);
      });

      test("so it is behind TLS that the proxy begins, and by a tunnel", async () => {
        const secured = await call(kind, `127.0.0.1:${outside.secure}`);
        assert.equal(statusOf(secured), 200, JSON.stringify(secured));
        const { address } = mesh.pod(`client-${kind}`);
        assert.match(
          await throughTunnel(connect(outboundPort, address), `localhost:${outside.connections}`, "/tunnel"),
          /"app":"outside"/,
        );
      });

      test("a server whose certificate has none of the entry's names gets nothing", async () => {
        const outcome = await call(kind, "wrong.example.com");
        assert.equal(statusOf(outcome), 503, JSON.stringify(outcome));
      });

      test("time limits and tries are those of the VirtualService", async () => {
        assert.equal(statusOf(await call(kind, "fixed.example.com", "/never")), 504);
        assert.equal(statusOf(await call(kind, "fixed.example.com", `/flaky?${kind}`)), 200);
        assert.equal(statusOf(await call(kind, "named.example.com", `/flaky?named-${kind}`)), 503);
      });

      test("a tunnel to a port of connections leads to the endpoint", async () => {
        const { address } = mesh.pod(`client-${kind}`);
        assert.match(
          await throughTunnel(connect(outboundPort, address), "fixed.example.com:5432", "/tunnel"),
          /"app":"outside"/,
        );
      });

      test("a gateway leads to it", async () => {
        const { address } = mesh.pod(`edge-${kind}`);
        const outcome = await callMeshed({ host: address, port: gatewayPort, headers: { host: "fixed.example.com" } });
        assert.equal(statusOf(outcome), 200, JSON.stringify(outcome));
      });

      test("no other host is there, nor another namespace's own", async () => {
        for (const host of ["unknown.example.com", "private.example.com"])
          assert.equal(statusOf(await call(kind, host)), 502, host);
      });

      for (const server of kinds) {
        for (const host of [`machine-${server}.internal:9000`, `service-${server}:80`]) {
          test(`${host}, under STRICT, is spoken to by mutual TLS`, async () => {
            const outcome = await call(kind, host);
            assert.equal(statusOf(outcome), 200, JSON.stringify(outcome));
            assert.equal(outcome.type === "answered" ? outcome.echo?.app : undefined, `server-${server}`);
            assert.match(callerOf(outcome) ?? "", new RegExp(`/ns/shop/sa/client-${kind}$`));
          });
        }
        test(`who has another service account than machine-${server}'s entry says gets nothing`, async () => {
          const outcome = await call(kind, `impostor-${server}.internal:9000`);
          assert.equal(statusOf(outcome), 503, JSON.stringify(outcome));
        });
      }
    });
  }

  test("callers' metrics name the host and the workload", async () => {
    const text = await mesh.admin("client-tulle", "/stats/prometheus");
    const line = text.split("\n").find((each) => each.startsWith("istio_requests_total") && each.includes('"fixed.'));
    assert.match(line ?? "", /destination_service="fixed\.example\.com"/);
    assert.match(line ?? "", /destination_workload="fixed-0"/);
    assert.match(line ?? "", /destination_service_namespace="shop"/);
  });
});

function statusOf(outcome: MeshedOutcome): number | undefined {
  return outcome.type === "answered" ? outcome.status : undefined;
}

function manifests(
  mesh: MeshedProxies,
  {
    plain,
    secure,
    connections,
    roots,
  }: { readonly plain: number; readonly secure: number; readonly connections: number; readonly roots: string },
): string {
  const http = (targetPort: number) => ({ number: 80, name: "http", protocol: "HTTP", targetPort });
  const here = [{ address: "127.0.0.1" }];
  const originated = (name: string, tls: object = {}) => ({
    apiVersion: "networking.istio.io/v1",
    kind: "DestinationRule",
    metadata: { name, namespace: "shop" },
    spec: { host: `${name}.example.com`, trafficPolicy: { tls: { mode: "SIMPLE", caCertificates: roots, ...tls } } },
  });
  const resources = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "istio", namespace: "istio-system" },
      data: { mesh: JSON.stringify({ outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } }) },
    },
    {
      apiVersion: "security.istio.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: "shop" },
      spec: { mtls: { mode: "STRICT" } },
    },
    entryOf("fixed", {
      resolution: "STATIC",
      ports: [http(plain), { number: 5432, name: "sql", protocol: "TCP", targetPort: plain }],
      endpoints: here,
    }),
    entryOf("named", { resolution: "DNS", ports: [http(plain)], endpoints: [{ address: "localhost" }] }),
    entryOf("logical", {
      resolution: "DNS_ROUND_ROBIN",
      ports: [http(plain)],
      endpoints: [{ address: "localhost", ports: { http: plain } }],
    }),
    entryOf("literal", { resolution: "DNS_ROUND_ROBIN", ports: [http(plain)], endpoints: here }),
    entryOf("secure", {
      resolution: "STATIC",
      ports: [http(secure)],
      endpoints: here,
      subjectAltNames: ["secure.example.com"],
    }),
    originated("secure"),
    entryOf("wrong", {
      resolution: "STATIC",
      ports: [http(secure)],
      endpoints: here,
      subjectAltNames: ["other.example.com"],
    }),
    originated("wrong", { sni: "secure.example.com" }),
    entryOf("unresolved", {
      hosts: ["localhost"],
      ports: [
        { number: plain, name: "http", protocol: "HTTP" },
        { number: connections, name: "tcp", protocol: "TCP" },
      ],
    }),
    entryOf("addressed", { addresses: ["127.0.0.1"], ports: [{ number: secure, name: "http", protocol: "HTTP" }] }),
    originated("addressed", { sni: "other.example.com", subjectAltNames: ["other.example.com"] }),
    entryOf("private", { resolution: "STATIC", ports: [http(plain)], endpoints: here, exportTo: ["."] }, "blog"),
    {
      apiVersion: "networking.istio.io/v1",
      kind: "VirtualService",
      metadata: { name: "fixed", namespace: "shop" },
      spec: {
        hosts: ["fixed.example.com"],
        gateways: ["mesh", "edge"],
        http: [
          {
            match: [{ uri: { prefix: "/never" } }],
            timeout: "0.3s",
            route: [{ destination: { host: "fixed.example.com", port: { number: 80 } } }],
          },
          {
            retries: { attempts: 3, retryOn: "5xx" },
            route: [{ destination: { host: "fixed.example.com", port: { number: 80 } } }],
          },
        ],
      },
    },
    {
      apiVersion: "networking.istio.io/v1",
      kind: "Gateway",
      metadata: { name: "edge", namespace: "shop" },
      spec: {
        selector: { role: "edge" },
        servers: [{ port: { number: gatewayPort, name: "http", protocol: "HTTP" }, hosts: ["*.example.com"] }],
      },
    },
    ...kinds.flatMap((server) => machine(server, mesh.pod(`server-${server}`).address)),
  ];
  return resources.map((each) => JSON.stringify(each)).join("\n---\n");
}

/** A pod of the mesh as if it were a machine: by a WorkloadEntry, for a ServiceEntry and for a Service. */
function machine(server: ProxyKind, address: string): readonly object[] {
  const { spec: selected, ...entry } = entryOf(`machine-${server}`, {
    hosts: [`machine-${server}.internal`],
    location: "MESH_INTERNAL",
    resolution: "STATIC",
    ports: [{ number: 9000, name: "http", protocol: "HTTP", targetPort: appPort }],
  });
  const { spec: written, ...impostor } = entryOf(`impostor-${server}`, {
    ...selected,
    hosts: [`impostor-${server}.internal`],
    endpoints: [{ address, serviceAccount: "somebody" }],
  });
  const labels = { machine: server };
  return [
    { ...entry, spec: { ...selected, workloadSelector: { labels } } },
    { ...impostor, spec: written },
    {
      apiVersion: "networking.istio.io/v1",
      kind: "WorkloadEntry",
      metadata: { name: `machine-${server}`, namespace: "shop" },
      spec: { address, labels, serviceAccount: `server-${server}` },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: `service-${server}`, namespace: "shop" },
      spec: { selector: labels, ports: [{ name: "http", port: 80, targetPort: appPort }] },
    },
  ];
}
