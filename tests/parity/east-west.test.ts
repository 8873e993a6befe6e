// Two networks without a route to each other, and east-west gateways that have a foot in both: workloads of the second
// are reached from the first by their mutual TLS past a gateway, on both proxies at each of the three places; and what
// whoever dials a gateway gets who is no proxy of the mesh.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect as connectTls, type ConnectionOptions, createServer as createTlsServer } from "node:tls";
import { throughTunnel } from "../tools/through-tunnel.ts";
import { callWithin, connectWithin } from "../tools/call-within.ts";
import { MeshedProxies, type MeshedPod, type PodPlace, type ProxyKind } from "../tools/meshed-proxies.ts";
import { NetworkNamespace } from "../tools/network-namespace.ts";
import { startProcess, waitFor } from "../tools/processes.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;
const passingPort = 15_443;
const [appPort, tcpPort] = [3000, 5432];

/** Addresses at the two cables by the pod's name: the gateway's own is that of the first network. */
const addresses: Readonly<Record<string, string>> = {
  "client-tulle": "10.91.1.1",
  "client-envoy": "10.91.1.2",
  "edge-tulle": "10.91.1.101",
  "edge-envoy": "10.91.1.102",
  "server-tulle": "10.92.2.1",
  "server-envoy": "10.92.2.2",
  "plain-envoy": "10.92.2.3",
};
const gatewayInSecond = "10.92.2.254";

/** One that tells who it is, and by whose certificate it was asked. */
const application = `
  const { createServer } = require("node:http");
  const [name, host, ...ports] = process.argv.slice(1);
  for (const port of ports)
    createServer((request, response) => response.end(JSON.stringify({ app: name, headers: request.headers })))
      .listen(Number(port), host, () => console.log("listens"));`;

class TwoNetworks implements AsyncDisposable {
  readonly first: NetworkNamespace;
  readonly second: NetworkNamespace;
  readonly between: NetworkNamespace;
  readonly #open = new AsyncDisposableStack();

  private constructor(first: NetworkNamespace, second: NetworkNamespace, between: NetworkNamespace) {
    [this.first, this.second, this.between] = [first, second, between];
    for (const network of [first, second, between]) this.#open.use(network);
  }

  static async open(): Promise<TwoNetworks> {
    const made = new TwoNetworks(
      await NetworkNamespace.create(),
      await NetworkNamespace.create(),
      await NetworkNamespace.create(),
    );
    await made.first.connect(made.between, "first");
    await made.second.connect(made.between, "second");
    for (const [name, address] of [...Object.entries(addresses), ["between", gatewayInSecond] as const]) {
      const network = name === "between" ? made.between : made.#networkOf(name);
      const cable = address.startsWith("10.91.") ? "first" : "second";
      await network.mustRun("ip", "address", "add", `${address}/24`, "dev", cable);
    }
    return made;
  }

  #networkOf(name: string): NetworkNamespace {
    if (name.startsWith("client")) return this.first;
    return name.startsWith("edge") ? this.between : this.second;
  }

  placeOf(name: string): PodPlace {
    const address = addresses[name]!;
    return { network: this.#networkOf(name), address, appAddress: `127.0.1.${address.split(".").at(-1)}` };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync();
  }
}

function sni(host: string, port: number, subset = ""): string {
  return `outbound_.${port}_.${subset}_.${host}.svc.cluster.local`;
}

const asProxy = (servername: string): ConnectionOptions => ({ servername, ALPNProtocols: ["istio", "http/1.1"] });

/** `tls` is missing for plain text. Listeners count whom no filter chain is for, clusters whom no endpoint is for. */
const attacks: readonly {
  readonly name: string;
  readonly tls?: ConnectionOptions;
  readonly counted: "unmatched" | "nobody";
}[] = [
  { name: "plain text", counted: "unmatched" },
  { name: "who names nobody", tls: { ALPNProtocols: ["istio"] }, counted: "unmatched" },
  {
    name: "a client that does not speak as a proxy of a mesh does",
    tls: { servername: sni("server-tulle.shop", appPort) },
    counted: "unmatched",
  },
  { name: "who names a Service that is not there", tls: asProxy(sni("nobody.shop", 80)), counted: "unmatched" },
  { name: "who names another port", tls: asProxy(sni("server-tulle.shop", 3001)), counted: "unmatched" },
  { name: "who names another subset", tls: asProxy(sni("server-tulle.shop", appPort, "v9")), counted: "unmatched" },
  { name: "who names another namespace's own", tls: asProxy(sni("secret.blog", 80)), counted: "unmatched" },
  {
    name: "who names a host outside of the mesh",
    tls: asProxy(`outbound_.443_._.outside.example.com`),
    counted: "unmatched",
  },
  {
    name: "who names workloads that take no mutual TLS",
    tls: asProxy(sni("plain-envoy.shop", appPort)),
    counted: "nobody",
  },
];

describe("an east-west gateway", () => {
  const open = new AsyncDisposableStack();
  let networks: TwoNetworks;
  let mesh: MeshedProxies;

  before(
    async () => {
      networks = open.use(await TwoNetworks.open());
      mesh = open.use(
        await MeshedProxies.start({
          pods: Object.keys(addresses).map(podOf),
          ports: [appPort, tcpPort],
          protocols: { [tcpPort]: "tcp" },
          manifests: manifests(addresses["edge-tulle"]!),
          placeOf: ({ name }) => networks.placeOf(name),
          // A gateway's connections leave by whatever cable leads there.
          bootstrapOf: ({ isGateway }) =>
            isGateway === true ? { clusters: [], fields: { cluster_manager: {} } } : undefined,
          startApplication: async ({ name, appAddress, network }) => {
            const words = [...network!.enter, process.execPath, "-e", application, name, appAddress];
            const started = await startProcess("env", [...words, String(appPort), String(tcpPort)], { name });
            await started.waitForOutput(/^listens\nlistens$/m);
            return { [Symbol.asyncDispose]: async () => void (await started.stop()) };
          },
        }),
      );
    },
    { timeout: 240_000 },
  );
  after(() => open.disposeAsync());

  test("the networks have no route to each other", async () => {
    const socket = connectWithin(networks.first, addresses["server-tulle"]!, appPort);
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code));
    socket.once("connect", () => resolve("connected"));
    assert.equal(await promise, "ENETUNREACH");
  });

  test("that is an impostor with another workload's certificate gets no request", async () => {
    const { keyPem: key, chainPem: cert, rootsPem: ca } = await mesh.authority.issue("shop", "impostor");
    const server = createTlsServer({ key, cert, ca, requestCert: true, ALPNProtocols: ["istio", "h2", "http/1.1"] });
    let [tries, received] = [0, 0];
    server.on("connection", (socket) => {
      tries += 1;
      socket.on("error", () => undefined);
    });
    server.on("tlsClientError", () => undefined);
    server.on("secureConnection", (socket) => {
      socket.on("data", (chunk: Buffer) => (received += chunk.length)).on("error", () => undefined);
    });
    networks.first.within(() => server.listen(passingPort));
    await using _closed = server;
    await mesh.setManifests(manifests(addresses["client-tulle"]!));
    await mesh.settled();
    for (const client of kinds) {
      const known = tries;
      const headers = { host: `server-tulle.shop:${appPort}` };
      const ip = addresses[`client-${client}`]!;
      assert.equal((await callWithin(networks.first, { ip, port: outboundPort, headers })).status, 503, client);
      assert.ok(tries > known, client);
    }
    assert.equal(received, 0);
  });

  for (const gateway of kinds) {
    describe(`of the proxy ${gateway}`, () => {
      before(async () => {
        await mesh.setManifests(manifests(addresses[`edge-${gateway}`]!));
        await mesh.settled();
      });

      for (const client of kinds) {
        for (const server of kinds) {
          for (const subset of ["", "/subset"]) {
            test(`leads ${client}'s requests to ${server}${subset}`, async () => {
              const { status, body } = await callWithin(networks.first, {
                ip: addresses[`client-${client}`]!,
                port: outboundPort,
                path: subset,
                headers: { host: `server-${server}.shop:${appPort}` },
              });
              assert.equal(status, 200, body);
              const told = JSON.parse(body) as { app: string; headers: Readonly<Record<string, string>> };
              assert.equal(told.app, `server-${server}`);
              const caller = told.headers["x-forwarded-client-cert"] ?? "";
              assert.match(caller, new RegExp(`URI=spiffe://[^;]*/sa/client-${client}$`));
            });
          }

          test(`leads ${client}'s connections to ${server}`, async () => {
            const target = `server-${server}.shop:${tcpPort}`;
            const received = await throughTunnel(
              connectWithin(networks.first, addresses[`client-${client}`]!, outboundPort),
              target,
              "/",
            );
            assert.match(received, new RegExp(`"app":"server-${server}"`));
          });
        }

        test(`leads ${client} to nobody who takes no mutual TLS, nor to another namespace's own`, async () => {
          for (const host of [`plain-envoy.shop:${appPort}`, "secret.blog:80"]) {
            const ip = addresses[`client-${client}`]!;
            const { status } = await callWithin(networks.first, { ip, port: outboundPort, headers: { host } });
            assert.equal(status === 200, false, host);
          }
        });
      }

      for (const { name, tls, counted } of attacks) {
        test(`gives nothing to ${name}`, async () => {
          const ip = addresses[`edge-${gateway}`]!;
          const known = await countOf(mesh, gateway, counted);
          assert.equal(await dial(networks.first, ip, tls), "");
          await waitFor(async () => (await countOf(mesh, gateway, counted)) === known + 1, { what: "one more" });
        });
      }

      test("passes on to the workload itself, which lets in nobody without a certificate of the mesh", async () => {
        const { rootsPem } = await mesh.authority.issue("shop", "reader");
        const servername = sni("server-envoy.shop", appPort);
        const stranger: ConnectionOptions = { servername, ALPNProtocols: ["istio", "http/1.1"], ca: rootsPem };
        const ip = addresses[`edge-${gateway}`]!;
        assert.equal(await dial(networks.first, ip, stranger), "");
        const { keyPem: key, chainPem: cert } = await mesh.authority.issue("shop", "reader");
        assert.match(await dial(networks.first, ip, { ...stranger, key, cert }), /"app":"server-envoy"/);
      });
    });
  }
});

const counterNames = {
  unmatched: /^listener\..*15443\.no_filter_chain_match: (\d+)$/gm,
  nobody: /^cluster\.outbound_.*plain-envoy.*\.upstream_cx_none_healthy: (\d+)$/gm,
} as const;

async function countOf(mesh: MeshedProxies, gateway: ProxyKind, counted: keyof typeof counterNames): Promise<number> {
  const text = await mesh.admin(`edge-${gateway}`, "/stats");
  return [...text.matchAll(counterNames[counted])].reduce((total, [, value]) => total + Number(value), 0);
}

/** What comes back for a request; empty where the connection is closed first. */
async function dial(network: NetworkNamespace, ip: string, tls: ConnectionOptions | undefined): Promise<string> {
  const plain = connectWithin(network, ip, passingPort);
  const socket =
    tls === undefined
      ? plain
      : connectTls({ socket: plain, rejectUnauthorized: false, ...tls, checkServerIdentity: () => undefined });
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
  for (const each of [socket, plain]) {
    each.on("error", () => resolve(received));
    each.on("close", () => resolve(received));
  }
  socket.write("GET / HTTP/1.1\r\nhost: any\r\nconnection: close\r\n\r\n");
  return promise;
}

function podOf(name: string): MeshedPod {
  const [role, proxy] = name.split("-") as [string, ProxyKind];
  return {
    name,
    namespace: "shop",
    proxy,
    labels: {
      role,
      "topology.istio.io/network": role === "client" ? "first" : "second",
      ...(role === "plain" ? { takes: "plain" } : {}),
    },
    ...(role === "edge" ? { isGateway: true } : {}),
  };
}

/** With the gateway at that address for the second network. */
function manifests(gateway: string): string {
  const istio = (group: string, kind: string, name: string, spec: object) => ({
    apiVersion: `${group}.istio.io/v1`,
    kind,
    metadata: { name, namespace: "shop" },
    spec,
  });
  const meshNetworks = {
    networks: { second: { gateways: [{ address: gateway, port: passingPort }] } },
  };
  const resources = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "istio", namespace: "istio-system" },
      data: { meshNetworks: JSON.stringify(meshNetworks) },
    },
    istio("security", "PeerAuthentication", "default", { mtls: { mode: "STRICT" } }),
    istio("security", "PeerAuthentication", "plain", {
      selector: { matchLabels: { takes: "plain" } },
      mtls: { mode: "DISABLE" },
    }),
    istio("networking", "Gateway", "edge", {
      selector: { role: "edge" },
      servers: [
        {
          port: { number: passingPort, name: "tls", protocol: "TLS" },
          hosts: ["*.local", "*.example.com"],
          tls: { mode: "AUTO_PASSTHROUGH" },
        },
      ],
    }),
    istio("networking", "ServiceEntry", "outside", {
      hosts: ["outside.example.com"],
      resolution: "STATIC",
      ports: [{ number: 443, name: "tls", protocol: "TLS" }],
      endpoints: [{ address: gatewayInSecond }],
    }),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "secret", namespace: "blog", annotations: { "networking.istio.io/exportTo": "." } },
      spec: { ports: [{ name: "http", port: 80 }] },
    },
    ...kinds.flatMap((kind) => [
      istio("networking", "DestinationRule", `server-${kind}`, {
        host: `server-${kind}`,
        subsets: [{ name: "served", labels: { role: "server" } }],
      }),
      istio("networking", "VirtualService", `server-${kind}`, {
        hosts: [`server-${kind}`],
        http: [
          {
            match: [{ uri: { prefix: "/subset" } }],
            route: [{ destination: { host: `server-${kind}`, port: { number: appPort }, subset: "served" } }],
          },
          { route: [{ destination: { host: `server-${kind}`, port: { number: appPort } } }] },
        ],
      }),
    ]),
  ];
  return resources.map((each) => JSON.stringify(each)).join("\n---\n");
}
