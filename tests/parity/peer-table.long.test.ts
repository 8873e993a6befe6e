// Peers that are not who they should be, on both sides of both proxies: the handshake ends, one counter tells why, and
// where a request waited its log line does too. Requests come by HTTP/1.1 and by HTTP/2.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { type ConnectionOptions, createServer, type Server } from "node:tls";
import { type TestCertificate, testCertificate } from "../tools/certificates.ts";
import { versions } from "../tools/http2-client.ts";
import { freeAddressBlock, waitFor } from "../tools/processes.ts";
import { TestAuthority } from "../tools/workload-secrets.ts";
import { type AccessLogLine, parseAccessLogLine } from "./access-log-line.ts";
import { callMeshed, meshClient, type MeshedOutcome } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const port = 3000;
const outboundPort = 15_007;
const counters = ["connection_error", "fail_verify_error", "fail_verify_san", "fail_verify_no_cert"] as const;
type Counter = (typeof counters)[number];

/** The one counter that moves, and the reason that a caller's log gives, behind `verify cert failed: `. */
interface PeerRow {
  readonly name: string;
  /** Undefined: nothing is wrong. */
  readonly asClient?: Counter | undefined;
  readonly asServer?: readonly [Counter, string] | undefined;
  /** Where BoringSSL gives a chain up for another reason than OpenSSL. */
  readonly asServerToEnvoy?: string | undefined;
}

const wrongName = (names: string): readonly [Counter, string] => [
  "fail_verify_san",
  `SAN matcher, certificate SANs are [${names}]`,
];
const chainReason = (reason: string, depth: number): string =>
  `X509_verify_cert: certificate verification error at depth ${depth}: ${reason}`;
const noIssuer = chainReason("unable to get local issuer certificate", 0);
const untrusted = (reason: string, depth = 0): Pick<PeerRow, "asClient" | "asServer"> => ({
  asClient: "fail_verify_error",
  asServer: ["fail_verify_error", chainReason(reason, depth)],
});

const rows = [
  { name: "good" },
  {
    name: "another trust domain",
    asClient: "fail_verify_san",
    asServer: wrongName("spiffe://elsewhere.test/ns/shop/sa/fake"),
  },
  {
    name: "a trust domain that begins alike",
    asClient: "fail_verify_san",
    asServer: wrongName("spiffe://cluster.local.evil/ns/shop/sa/fake"),
  },
  // Whoever it is, policies say what it may do.
  { name: "another account", asServer: wrongName("spiffe://cluster.local/ns/shop/sa/other") },
  { name: "an account that begins alike", asServer: wrongName("spiffe://cluster.local/ns/shop/sa/fake2") },
  {
    name: "its name as a DNS name",
    asClient: "fail_verify_san",
    asServer: wrongName("spiffe://cluster.local/ns/shop/sa/fake"),
  },
  { name: "its name as common name", asClient: "fail_verify_san", asServer: wrongName("") },
  { name: "another root", ...untrusted("unable to get local issuer certificate", 1) },
  { name: "signed by itself", ...untrusted("self signed certificate"), asServerToEnvoy: noIssuer },
  { name: "signed by a workload", ...untrusted("certificate rejected"), asServerToEnvoy: noIssuer },
  { name: "expired", ...untrusted("certificate has expired") },
  { name: "not yet valid", ...untrusted("certificate is not yet valid") },
] as const satisfies readonly PeerRow[];
const certificates = new Map<string, TestCertificate>();

const identity = (account: string, trustDomain = "cluster.local"): string =>
  `URI:spiffe://${trustDomain}/ns/shop/sa/${account}`;

async function makeCertificates(mesh: TestAuthority, root: TestCertificate): Promise<void> {
  const dayMs = 86_400_000;
  const named = (...names: readonly string[]): Promise<TestCertificate> =>
    testCertificate({ commonName: "peer", issuer: root, names });
  const issued = async (atMs: number): Promise<TestCertificate> => {
    const { keyPem, chainPem } = await mesh.issue("shop", "fake", { atMs });
    return { key: keyPem, certificate: chainPem };
  };
  const good = await issued(Date.now());
  const stranger = await (await TestAuthority.create()).issue("shop", "fake");
  const made: Record<(typeof rows)[number]["name"], TestCertificate> = {
    good,
    "another trust domain": await named(identity("fake", "elsewhere.test")),
    "a trust domain that begins alike": await named(identity("fake", "cluster.local.evil")),
    "another account": await named(identity("other")),
    "an account that begins alike": await named(identity("fake2")),
    "its name as a DNS name": await named("DNS:spiffe://cluster.local/ns/shop/sa/fake"),
    "its name as common name": await testCertificate({
      commonName: "spiffe:\\/\\/cluster.local\\/ns\\/shop\\/sa\\/fake",
      issuer: root,
    }),
    "another root": { key: stranger.keyPem, certificate: stranger.chainPem },
    "signed by itself": await testCertificate({ commonName: "peer", names: [identity("fake")] }),
    "signed by a workload": await withChain(
      await testCertificate({ commonName: "peer", issuer: good, names: [identity("fake")] }),
      good,
    ),
    expired: await issued(Date.now() - dayMs / 2),
    "not yet valid": await issued(Date.now() + dayMs / 2),
  };
  for (const [name, certificate] of Object.entries(made)) certificates.set(name, certificate);
}

async function withChain(leaf: TestCertificate, issuer: TestCertificate): Promise<TestCertificate> {
  return { key: leaf.key, certificate: leaf.certificate + issuer.certificate };
}

const clientOf = (name: string): ConnectionOptions => {
  const { key, certificate } = certificates.get(name)!;
  return meshClient({ keyPem: key, chainPem: certificate });
};

/** Workloads without a proxy of ours, that say they have one: each row has a port at the same pod. */
const address = `${await freeAddressBlock()}.77`;
const portOf = (index: number): number => 4100 + index;

function fakeWorkload(): string {
  const ports = rows.map((_row, index) => ({ name: `http-${portOf(index)}`, port: portOf(index) }));
  const metadata = { name: "fake", namespace: "shop" };
  const labels = { app: "fake", "security.istio.io/tlsMode": "istio" };
  const resources = [
    { apiVersion: "v1", kind: "Service", metadata, spec: { selector: { app: "fake" }, ports } },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, labels },
      spec: { serviceAccountName: "fake", containers: [{ name: "app" }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, labels: { "kubernetes.io/service-name": "fake" } },
      addressType: "IPv4",
      ports,
      endpoints: [{ addresses: [address], targetRef: { kind: "Pod", ...metadata } }],
    },
    {
      apiVersion: "security.tulle.io/v1",
      kind: "PeerAuthentication",
      metadata: { name: "default", namespace: "shop" },
      spec: { mtls: { mode: "STRICT" } },
    },
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "DestinationRule",
      metadata,
      spec: { host: "fake", trafficPolicy: { connectionPool: { http: { h2UpgradePolicy: "DO_NOT_UPGRADE" } } } },
    },
  ];
  return resources.map((resource) => JSON.stringify(resource)).join("\n---\n");
}

describe("peers that are not who they should be", () => {
  let mesh: MeshedProxies;
  const servers: Server[] = [];

  before(
    async () => {
      const root = await testCertificate({ commonName: "another root", isAuthority: true });
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports: [port],
        manifests: fakeWorkload(),
        furtherRootsPem: root.certificate,
      });
      await makeCertificates(mesh.authority, root);
      for (const [index, { name }] of rows.entries()) servers.push(await startServer(name, portOf(index)));
    },
    { timeout: 120_000 },
  );
  after(async () => {
    for (const server of servers) server.close();
    await mesh?.[Symbol.asyncDispose]();
  });

  async function counted(pod: string): Promise<Readonly<Record<Counter, number>>> {
    const text = await mesh.admin(pod, "/stats?filter=ssl");
    const sum = (name: string): number =>
      [...text.matchAll(new RegExp(String.raw`^(?:listener|cluster)\.\S*ssl\.${name}: (\d+)$`, "gm"))].reduce(
        (total, match) => total + Number(match[1]),
        0,
      );
    return Object.fromEntries(counters.map((name) => [name, sum(name)])) as Record<Counter, number>;
  }

  /** What moves while the call is made; a proxy may count a moment after it has closed. */
  async function movedBy(pod: string, call: () => Promise<MeshedOutcome>, expected: Counter | undefined) {
    const start = await counted(pod);
    const outcome = await call();
    const moved = async (): Promise<readonly Counter[]> => {
      const now = await counted(pod);
      return counters.filter((name) => now[name] > start[name]);
    };
    const hasMoved = async (): Promise<boolean> => expected === undefined || (await moved()).length > 0;
    await waitFor(hasMoved, { what: `${expected} of ${pod}`, intervalMs: 50 });
    return { outcome, moved: await moved() };
  }

  const cells = kinds.flatMap((kind) => versions.map((version) => ({ kind, version })));
  for (const { kind, version } of cells) {
    for (const row of rows as readonly PeerRow[]) {
      const verdict = row.asClient === undefined ? "serves" : "refuses";
      test(`a client: ${row.name}: ${kind} ${verdict} it, ${version}`, async () => {
        const pod = `server-${kind}`;
        const call = (): Promise<MeshedOutcome> =>
          callMeshed({ host: mesh.pod(pod).address, port, version, tls: clientOf(row.name) });
        const { outcome, moved } = await movedBy(pod, call, row.asClient);
        assert.equal(outcome.type, row.asClient === undefined ? "answered" : "refused", JSON.stringify(outcome));
        assert.deepEqual(moved, row.asClient === undefined ? [] : [row.asClient]);
      });
    }
    for (const [index, row] of (rows as readonly PeerRow[]).entries()) {
      const verdict = row.asServer === undefined ? "calls" : "leaves";
      test(`a server: ${row.name}: ${kind} ${verdict} it, ${version}`, async () => {
        const pod = `client-${kind}`;
        const agent = `row ${index}, ${version}`;
        const call = (): Promise<MeshedOutcome> =>
          callMeshed({
            host: mesh.pod(pod).address,
            port: outboundPort,
            version,
            headers: { host: `fake:${portOf(index)}`, "user-agent": agent },
          });
        const { outcome, moved } = await movedBy(pod, call, row.asServer?.[0]);
        assert.equal(outcome.type, "answered");
        const [counter, ownReason] = row.asServer ?? [];
        const reason = kind === "envoy" ? (row.asServerToEnvoy ?? ownReason) : ownReason;
        assert.equal(outcome.status, counter === undefined ? 200 : 503, outcome.body);
        assert.deepEqual(moved, counter === undefined ? [] : [counter]);
        if (reason === undefined) return;
        const line = await lineOf(pod, agent);
        assert.match(line.flags, /\bUF\b/);
        const told = `CERTIFICATE_VERIFY_FAILED:verify cert failed: ${reason}:TLS_error_end`.replaceAll(" ", "_");
        assert.equal(line.transportFailure.slice(line.transportFailure.indexOf("CERT")), told);
        // Nothing of the request has reached it.
        assert.ok(outcome.body.startsWith("upstream connect error"), outcome.body);
      });
    }
  }

  function lineOf(pod: string, agent: string): Promise<AccessLogLine> {
    const find = (): AccessLogLine | undefined =>
      mesh
        .output(pod)
        .split("\n")
        .flatMap((line) => parseAccessLogLine(line) ?? [])
        .find(({ userAgent }) => userAgent === agent);
    return waitFor(find, { what: `the log of ${agent}`, intervalMs: 100 });
  }
});

/** Answers whoever comes that far. */
async function startServer(name: string, at: number): Promise<Server> {
  const { key, certificate } = certificates.get(name)!;
  const server = createServer({ key, cert: certificate, ALPNProtocols: ["istio-http/1.1", "istio"] }, (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"));
  });
  server.on("tlsClientError", () => undefined);
  server.listen(at, address);
  await once(server, "listening");
  return server;
}
