// Hosts of ServiceEntries where connections are captured, on both proxies: addresses that clients look up themselves,
// ranges of them, and what an entry cannot take from others.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type CapturedPod, CapturedMesh } from "../tools/captured-mesh.ts";
import { helloFrom, serverName } from "../../packages/proxy/src/testing/made-hello.ts";
import { debianTool } from "../tools/debian-tool.ts";
import type { ProxyKind } from "../tools/meshed-proxies.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];

/** Says at which address it was asked: every port speaks HTTP, whatever entries call it. */
const outsideProgram = `
  const { createServer } = require("node:http");
  for (const port of process.argv.slice(1))
    createServer(({ socket, headers }, response) => {
      const at = socket.localAddress.replace("::ffff:", "");
      response.end(at + " " + socket.localPort + (headers["x-envoy-peer-metadata"] === undefined ? "" : " told"));
    }).listen(Number(port), () => console.log("listens"));
  // Whoever begins TLS there is told the address, in the clear.
  require("node:net").createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(socket.localAddress.replace("::ffff:", "")));
  }).listen(443, () => console.log("listens"));`;
const outsidePorts = ["80", "5432", "6379", "7000", "7070"];
const outside = ["10.88.2.1", "fd88::21", "10.88.2.2"] as const;

/** Sends a ClientHello to an address of its choice, and says what came. */
const helloProgram = `
  const socket = require("node:net").connect(443, "10.88.2.1");
  socket.on("error", () => {});
  socket.write(Buffer.from(process.argv[1], "hex"));
  socket.on("data", (chunk) => process.stdout.write(chunk));`;
/** Names under the wildcard that is looked up, as the proxies know them. */
const hosts = `10.88.2.2 a.dynamic.example
10.88.2.1 b.a.dynamic.example
169.254.169.254 metadata.dynamic.example
127.0.0.1 loopback.dynamic.example
::ffff:10.88.2.1 mapped.dynamic.example
0.0.0.0 unspecified.dynamic.example
`;

interface Row {
  readonly name: string;
  readonly url: string;
  readonly host?: string;
  /** What the program says, the status of the proxy's own answer, or nothing where the connection is closed. */
  readonly expected: string;
}

const rows: readonly Row[] = [
  {
    name: "a host without an address is asked where the client wants",
    url: "http://10.88.2.1/",
    host: "any.unresolved.example",
    expected: "10.88.2.1 80",
  },
  {
    name: "at another address, too",
    url: "http://10.88.2.2/",
    host: "any.unresolved.example",
    expected: "10.88.2.2 80",
  },
  {
    name: "and over IPv6",
    url: "http://[fd88::21]/",
    host: "any.unresolved.example",
    expected: "fd88::21 80",
  },
  {
    name: "a host that is looked up by its name is asked where that leads",
    url: "http://10.88.2.1/",
    host: "a.dynamic.example",
    expected: "10.88.2.2 80",
  },
  {
    name: "with HTTP's port written out, too",
    url: "http://10.88.2.1/",
    host: "a.dynamic.example:80",
    expected: "10.88.2.2 80",
  },
  {
    name: "at no port that the entry does not have",
    url: "http://10.88.2.1/",
    host: "a.dynamic.example:5432",
    expected: "502",
  },
  {
    name: "at another port of the entry's by the port in the request",
    url: "http://10.88.2.1:7070/",
    host: "a.dynamic.example:7070",
    expected: "10.88.2.2 7070",
  },
  {
    name: "which is not HTTP's own where none is written",
    url: "http://10.88.2.1:7070/",
    host: "a.dynamic.example",
    expected: "502",
  },
  ...["metadata", "loopback", "mapped", "unspecified", "nobody"].map((name) => ({
    name: `not where it leads to: ${name}`,
    url: "http://10.88.2.1/",
    host: `${name}.dynamic.example`,
    expected: "503",
  })),
  { name: "hosts of no entry are not", url: "http://10.88.2.1/", host: "unknown.example", expected: "502" },
  {
    name: "connections to its port go where they were meant to",
    url: "http://10.88.2.2:6379/",
    expected: "10.88.2.2 6379",
  },
  { name: "connections to its range do", url: "http://10.88.2.2:7000/", expected: "10.88.2.2 7000" },
  { name: "past its range they do not", url: "http://10.88.3.1:7000/", expected: "" },
  { name: "a range leads to the entry's endpoints", url: "http://10.99.1.2:5432/", expected: "10.88.2.1 5432" },
  { name: "the smaller range before the larger", url: "http://10.99.7.2:5432/", expected: "10.88.2.1 6379" },
  { name: "an address of IPv6 in a range", url: "http://[fd99::5]:5432/", expected: "10.88.2.1 5432" },
  { name: "a host has an address that it is given", url: "http://240.240.43.176:5432/", expected: "10.88.2.1 5432" },
  { name: "and one of IPv6", url: "http://[2001:2::2bb0]:5432/", expected: "10.88.2.1 5432" },
  { name: "next to it nothing is", url: "http://10.98.1.2:5432/", expected: "" },
  {
    name: "requests are told apart by their host within a range as well",
    url: "http://10.99.1.2/",
    host: "unknown.example",
    expected: "502",
  },
  {
    name: "a Service's address stays its own",
    url: "http://10.96.0.1/",
    host: "shop.shop",
    expected: "10.88.2.1 80 told",
  },
];

describe("captured hosts of ServiceEntries", () => {
  const open = new AsyncDisposableStack();
  const clients = new Map<ProxyKind, CapturedPod>();

  before(
    async () => {
      await debianTool("curl");
      const mesh = open.use(await CapturedMesh.open(manifests()));
      const far = await mesh.addPod("outside", outside);
      const program = await mesh.start(far, [process.execPath, "-e", outsideProgram, ...outsidePorts], "outside");
      await program.waitForOutput(/^(listens\n){6}$/m);
      for (const [index, kind] of kinds.entries()) {
        const pod = await mesh.addPod(`client-${kind}`, [`10.88.1.${index + 1}`, `fd88::1${index}`]);
        clients.set(kind, pod);
        await mesh.startProxy(pod, kind, {}, hosts);
      }
      await mesh.settled();
    },
    { timeout: 240_000 },
  );
  after(() => open.disposeAsync());

  for (const kind of kinds) {
    describe(kind, () => {
      for (const { name, url, host, expected } of rows) {
        test(name, async () => {
          const header = host === undefined ? [] : ["-H", `host: ${host}`];
          const write = String.raw`\n%{http_code}`;
          const { stdout } = await clients.get(kind)!.network.run("curl", "-sg", "-w", write, ...header, url);
          const [body = "", status] = stdout.split("\n");
          assert.equal(status === "200" ? body : status === "000" ? "" : status, expected);
        });
      }

      test("TLS goes where the name leads that it asks for", async () => {
        const say = async (name: string): Promise<string> => {
          const hello = helloFrom({ extensions: serverName(Buffer.from(name)) }).toString("hex");
          const { stdout } = await clients.get(kind)!.network.run(process.execPath, "-e", helloProgram, hello);
          return stdout;
        };
        assert.equal(await say("a.dynamic.example"), "10.88.2.2");
        assert.equal(await say("b.a.dynamic.example"), "10.88.2.1");
        for (const name of ["metadata.dynamic.example", "loopback.dynamic.example", "nobody.dynamic.example"])
          assert.equal(await say(name), "", name);
        // Of no entry: passed on nowhere (REGISTRY_ONLY).
        assert.equal(await say("a.other.example"), "");
      });
    });
  }
});

function manifests(): string {
  const entry = (name: string, spec: object) => ({
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name, namespace: "shop" },
    spec: { hosts: [`${name}.example`], ...spec },
  });
  const tcp = (number: number, targetPort = number) => ({ number, name: `tcp-${number}`, protocol: "TCP", targetPort });
  const endpoints = [{ address: outside[0] }];
  const resources = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "istio", namespace: "istio-system" },
      data: { mesh: JSON.stringify({ outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } }) },
    },
    entry("unresolved", {
      hosts: ["*.unresolved.example"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }, tcp(6379)],
    }),
    entry("dynamic", {
      hosts: ["*.dynamic.example"],
      resolution: "DYNAMIC_DNS",
      ports: [
        { number: 80, name: "http", protocol: "HTTP" },
        { number: 7070, name: "http-other", protocol: "HTTP" },
        { number: 443, name: "tls", protocol: "TLS" },
      ],
    }),
    entry("unresolved-range", { resolution: "NONE", addresses: ["10.88.2.0/24"], ports: [tcp(7000)] }),
    entry("range", {
      resolution: "STATIC",
      addresses: ["10.99.0.0/16", "fd99::/64"],
      ports: [tcp(5432), tcp(80, 5432)],
      endpoints,
    }),
    entry("smaller", { resolution: "STATIC", addresses: ["10.99.7.9/24"], ports: [tcp(5432, 6379)], endpoints }),
    entry("given", { resolution: "STATIC", ports: [tcp(5432)], endpoints }),
    entry("thief", { resolution: "STATIC", addresses: ["10.96.0.1"], ports: [tcp(80, 5432)], endpoints }),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "shop", namespace: "shop" },
      spec: { clusterIP: "10.96.0.1", ports: [{ name: "http", port: 80 }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "shop", namespace: "shop", labels: { "kubernetes.io/service-name": "shop" } },
      addressType: "IPv4",
      ports: [{ name: "http", port: 80 }],
      endpoints: [{ addresses: [outside[0]] }],
    },
  ];
  return resources.map((each) => JSON.stringify(each)).join("\n---\n");
}
