// TLS at a gateway, on Tulle's proxy and on a stock Envoy with the same resources: which certificate is shown for which
// name, whose clients are let in, what passes through, and what happens while a Secret changes; by HTTP/1.1 and by
// HTTP/2.
import assert from "node:assert/strict";
import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { readWorkloadCertificate } from "@tulle/identity";
import { testCertificate, type TestCertificate, testRevocationList } from "../tools/certificates.ts";
import { waitFor } from "../tools/processes.ts";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { http2Request, requestBytes, rows as callRows } from "./call.ts";
import { ParityMesh, type Proxy, proxies } from "./parity-mesh.ts";
import { exchangeBytes } from "../tools/raw-client.ts";
import { type TlsOutcome, type TlsRequest, tlsRequest } from "./tls-client.ts";

const names = ["site.example", "other.example", "*.wild.example", "mutual.example", "replaced.example"] as const;

interface Material {
  readonly servers: ReadonlyMap<string, TestCertificate>;
  readonly authority: TestCertificate;
  readonly client: TestCertificate;
  readonly named: TestCertificate;
  readonly revoked: TestCertificate;
  readonly stranger: TestCertificate;
  readonly expired: TestCertificate;
  readonly revocations: string;
  /** Of a workload of the mesh. */
  readonly workload: TestCertificate;
}

async function makeMaterial(): Promise<Omit<Material, "workload">> {
  const authority = await testCertificate({ commonName: "clients", isAuthority: true });
  const clientOf = (commonName: string, dnsName: string, days = 30): Promise<TestCertificate> =>
    testCertificate({ commonName, names: [`DNS:${dnsName}`], issuer: authority, days });
  const [client, named, revoked, expired, stranger] = await Promise.all([
    clientOf("client", "client.example"),
    clientOf("named", "named.example"),
    clientOf("revoked", "client.example"),
    clientOf("expired", "client.example", -1),
    testCertificate({ commonName: "stranger", names: ["DNS:named.example"] }),
  ]);
  const servers = new Map(
    await Promise.all(
      names.map(async (name): Promise<[string, TestCertificate]> => [
        name,
        await testCertificate({ commonName: name, names: [`DNS:${name}`] }),
      ]),
    ),
  );
  const revocations = await testRevocationList(authority, revoked.certificate);
  return { servers, authority, client, named, revoked, stranger, expired, revocations };
}

function spkiHash({ certificate }: TestCertificate): string {
  const key = createPublicKey(new X509Certificate(certificate).publicKey.export({ type: "spki", format: "pem" }));
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("base64");
}

function certificateHash({ certificate }: TestCertificate): string {
  return new X509Certificate(certificate).fingerprint256;
}

function secret(name: string, stringData: Readonly<Record<string, string>>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "parity" }, stringData };
}

function pair({ certificate, key }: TestCertificate): Record<string, string> {
  return { "tls.crt": certificate, "tls.key": key };
}

const ports = { redirect: 8081, https: 8443, mutual: 9443, pass: 10_443, tcp: 5432, tls: 8883, auto: 15_443 } as const;

/** What a proxy of another mesh asks for when it wants port 443 of the Service `gateway-tls`. */
const autoHost = "gateway-tls.parity.svc.cluster.local";
const autoName = `outbound_.443_._.${autoHost}`;

function manifests(material: Omit<Material, "workload">): string {
  const { servers, authority, revocations, client } = material;
  const server = (port: number, name: string, protocol: string, hosts: readonly string[], tls?: object): object => ({
    port: { number: port, name, protocol },
    hosts,
    ...(tls === undefined ? {} : { tls }),
  });
  const mutual = (mode: string, more: object = {}): object => ({ mode, credentialName: "mutual", ...more });
  const documents = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "gateway-tls", namespace: "parity" },
      spec: {
        selector: { parity: "gateway" },
        ports: [
          { name: "http-redirect", port: 81, targetPort: ports.redirect },
          { name: "https", port: 443, targetPort: ports.https },
          { name: "https-mutual", port: 9443, targetPort: ports.mutual },
          { name: "tls-pass", port: 10_443, targetPort: ports.pass },
          { name: "tcp", port: 5432, targetPort: ports.tcp },
          { name: "tls", port: 8883, targetPort: ports.tls },
          { name: "tls-auto", port: 15_443, targetPort: ports.auto },
        ],
      },
    },
    secret("site", pair(servers.get("site.example")!)),
    secret("other", pair(servers.get("other.example")!)),
    secret("wild", { cert: servers.get("*.wild.example")!.certificate, key: servers.get("*.wild.example")!.key }),
    secret("replaced", pair(servers.get("replaced.example")!)),
    secret("mutual", {
      ...pair(servers.get("mutual.example")!),
      "ca.crt": authority.certificate,
      "ca.crl": revocations,
    }),
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "Gateway",
      metadata: { name: "secure", namespace: "parity" },
      spec: {
        selector: { parity: "gateway" },
        servers: [
          server(81, "redirect", "HTTP", ["*"], { httpsRedirect: true }),
          server(443, "site", "HTTPS", ["site.example"], { mode: "SIMPLE", credentialName: "site" }),
          server(443, "other", "HTTPS", ["other.example"], {
            mode: "SIMPLE",
            credentialName: "other",
            maxProtocolVersion: "TLSV1_2",
            cipherSuites: ["ECDHE-ECDSA-AES256-GCM-SHA384"],
          }),
          server(443, "wild", "HTTPS", ["*.wild.example"], {
            mode: "SIMPLE",
            credentialName: "wild",
            minProtocolVersion: "TLSV1_3",
          }),
          server(15_443, "auto", "TLS", ["*.parity.svc.cluster.local"], { mode: "AUTO_PASSTHROUGH" }),
          server(443, "replaced", "HTTPS", ["replaced.example"], { mode: "SIMPLE", credentialName: "replaced" }),
          server(9443, "mutual", "HTTPS", ["mutual.example"], mutual("MUTUAL")),
          server(9443, "optional", "HTTPS", ["optional.example"], mutual("OPTIONAL_MUTUAL")),
          server(9443, "named", "HTTPS", ["named.example"], mutual("MUTUAL", { subjectAltNames: ["named.example"] })),
          server(
            9443,
            "hash",
            "HTTPS",
            ["hash.example"],
            mutual("MUTUAL", { verifyCertificateHash: [certificateHash(client)] }),
          ),
          server(
            9443,
            "spki",
            "HTTPS",
            ["spki.example"],
            mutual("MUTUAL", { verifyCertificateSpki: [spkiHash(client)] }),
          ),
          server(9443, "istio", "HTTPS", ["istio.example"], { mode: "ISTIO_MUTUAL" }),
          server(10_443, "pass", "TLS", ["site.example", "*.wild.example"], { mode: "PASSTHROUGH" }),
          server(5432, "plain", "TCP", ["*"]),
          server(8883, "ended", "TLS", ["site.example"], { mode: "SIMPLE", credentialName: "site" }),
        ],
      },
    },
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "VirtualService",
      metadata: { name: "secure", namespace: "parity" },
      spec: {
        hosts: ["*"],
        gateways: ["secure"],
        http: [{ route: [{ destination: { host: "echo", port: { number: 80 }, subset: "version-v1" } }] }],
        tls: [
          {
            match: [{ sniHosts: ["site.example", "*.wild.example"], port: 10_443 }],
            route: [{ destination: { host: "gateway-tls", port: { number: 443 } } }],
          },
        ],
        tcp: [{ route: [{ destination: { host: "echo", port: { number: 80 }, subset: "version-v2" } }] }],
      },
    },
  ];
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

interface Row {
  readonly name: string;
  readonly port: number;
  readonly serverName?: string;
  readonly client?: (material: Material) => TestCertificate;
  readonly more?: Partial<TlsRequest>;
  readonly host?: string;
  /** By HTTP/1.1. */
  readonly expected: Partial<TlsOutcome>;
  /** What Tulle's proxy says to a client of HTTP/2 and to no other (docs/differences-from-envoy.md). */
  readonly statusOfTulleOverHttp2?: number;
  /** Why a client of HTTP/2 cannot ask it. */
  readonly http1Alone?: string;
  /** Within the back end's account of the request. */
  readonly body?: RegExp;
}

const get = (host: string): string => requestBytes("gateway", "/v1/ok", { host });

const rows: readonly Row[] = [
  {
    name: "SIMPLE",
    port: ports.https,
    serverName: "site.example",
    expected: { status: 200, shown: "site.example", version: "TLSv1.3", alpn: "http/1.1" },
  },
  {
    name: "SIMPLE, TLS 1.2",
    port: ports.https,
    serverName: "site.example",
    more: { maxVersion: "TLSv1.2" },
    expected: { status: 200, version: "TLSv1.2" },
  },
  {
    name: "the name in capitals",
    port: ports.https,
    serverName: "SITE.example",
    host: "site.example",
    expected: { status: 200, shown: "site.example" },
  },
  {
    name: "no ALPN",
    port: ports.https,
    serverName: "site.example",
    more: { alpn: [] },
    expected: { status: 200, alpn: "false" },
  },
  {
    name: "another certificate by name",
    port: ports.https,
    serverName: "other.example",
    expected: {
      status: 200,
      shown: "other.example",
      version: "TLSv1.2",
      cipher: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    },
  },
  {
    name: "above the newest version",
    port: ports.https,
    serverName: "other.example",
    more: { minVersion: "TLSv1.3" },
    expected: { status: "refused" },
  },
  {
    name: "another cipher suite",
    port: ports.https,
    serverName: "other.example",
    more: { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" },
    expected: { status: "refused" },
  },
  {
    name: "a wildcard",
    port: ports.https,
    serverName: "a.wild.example",
    expected: { status: 200, shown: "*.wild.example", version: "TLSv1.3" },
  },
  {
    name: "a wildcard, two labels deep",
    port: ports.https,
    serverName: "a.b.wild.example",
    expected: { status: 200, shown: "*.wild.example" },
  },
  { name: "the wildcard's own name", port: ports.https, serverName: "wild.example", expected: { status: "refused" } },
  {
    name: "below the oldest version",
    port: ports.https,
    serverName: "a.wild.example",
    more: { maxVersion: "TLSv1.2" },
    expected: { status: "refused" },
  },
  { name: "a name of nobody", port: ports.https, serverName: "nobody.example", expected: { status: "refused" } },
  { name: "no name", port: ports.https, expected: { status: "refused" } },
  {
    name: "another Host inside",
    port: ports.https,
    serverName: "site.example",
    host: "other.example",
    expected: { status: 404 },
    // Browsers ask again on a connection of its own (RFC 9113 §9.1.2).
    statusOfTulleOverHttp2: 421,
  },
  {
    name: "a certificate that nobody asked for",
    port: ports.https,
    serverName: "site.example",
    client: (m) => m.client,
    expected: { status: 200 },
  },
  {
    name: "MUTUAL without a certificate",
    port: ports.mutual,
    serverName: "mutual.example",
    expected: { status: "refused" },
  },
  {
    name: "MUTUAL with one",
    port: ports.mutual,
    serverName: "mutual.example",
    client: (m) => m.client,
    expected: { status: 200, shown: "mutual.example" },
    body: /x-forwarded-client-cert.*DNS=client\.example/,
  },
  {
    name: "MUTUAL with a stranger's",
    port: ports.mutual,
    serverName: "mutual.example",
    client: (m) => m.stranger,
    expected: { status: "refused" },
  },
  {
    name: "MUTUAL with an expired one",
    port: ports.mutual,
    serverName: "mutual.example",
    client: (m) => m.expired,
    expected: { status: "refused" },
  },
  {
    name: "MUTUAL with a revoked one",
    port: ports.mutual,
    serverName: "mutual.example",
    client: (m) => m.revoked,
    expected: { status: "refused" },
  },
  {
    name: "MUTUAL, TLS 1.2",
    port: ports.mutual,
    serverName: "mutual.example",
    client: (m) => m.client,
    more: { maxVersion: "TLSv1.2" },
    expected: { status: 200 },
  },
  {
    name: "MUTUAL without a certificate, TLS 1.2",
    port: ports.mutual,
    serverName: "mutual.example",
    more: { maxVersion: "TLSv1.2" },
    expected: { status: "refused" },
  },
  {
    name: "OPTIONAL_MUTUAL without a certificate",
    port: ports.mutual,
    serverName: "optional.example",
    expected: { status: 200 },
  },
  {
    name: "OPTIONAL_MUTUAL with one",
    port: ports.mutual,
    serverName: "optional.example",
    client: (m) => m.client,
    expected: { status: 200 },
    body: /x-forwarded-client-cert.*DNS=client\.example/,
  },
  {
    name: "OPTIONAL_MUTUAL with a stranger's",
    port: ports.mutual,
    serverName: "optional.example",
    client: (m) => m.stranger,
    expected: { status: "refused" },
  },
  {
    name: "OPTIONAL_MUTUAL with a revoked one",
    port: ports.mutual,
    serverName: "optional.example",
    client: (m) => m.revoked,
    expected: { status: "refused" },
  },
  {
    name: "subjectAltNames, the right name",
    port: ports.mutual,
    serverName: "named.example",
    client: (m) => m.named,
    expected: { status: 200 },
  },
  {
    name: "subjectAltNames, another name",
    port: ports.mutual,
    serverName: "named.example",
    client: (m) => m.client,
    expected: { status: "refused" },
  },
  {
    name: "subjectAltNames, the right name of a stranger",
    port: ports.mutual,
    serverName: "named.example",
    client: (m) => m.stranger,
    expected: { status: "refused" },
  },
  {
    name: "verifyCertificateHash, that one",
    port: ports.mutual,
    serverName: "hash.example",
    client: (m) => m.client,
    expected: { status: 200 },
  },
  {
    name: "verifyCertificateHash, another one",
    port: ports.mutual,
    serverName: "hash.example",
    client: (m) => m.named,
    expected: { status: "refused" },
  },
  {
    name: "verifyCertificateSpki, that key",
    port: ports.mutual,
    serverName: "spki.example",
    client: (m) => m.client,
    expected: { status: 200 },
  },
  {
    name: "verifyCertificateSpki, another key",
    port: ports.mutual,
    serverName: "spki.example",
    client: (m) => m.named,
    expected: { status: "refused" },
  },
  {
    name: "ISTIO_MUTUAL with a workload's certificate",
    port: ports.mutual,
    serverName: "istio.example",
    client: (m) => m.workload,
    expected: { status: 200, shown: "", version: "TLSv1.3" },
    body: /x-forwarded-client-cert.*URI=spiffe:\/\/cluster.local\/ns\/parity\/sa\//,
  },
  {
    name: "ISTIO_MUTUAL without a certificate of the mesh",
    port: ports.mutual,
    serverName: "istio.example",
    client: (m) => m.client,
    expected: { status: "refused" },
  },
  {
    name: "PASSTHROUGH",
    port: ports.pass,
    serverName: "site.example",
    expected: { status: 200, shown: "site.example" },
  },
  {
    name: "PASSTHROUGH by a wildcard",
    port: ports.pass,
    serverName: "a.wild.example",
    expected: { status: 200, shown: "*.wild.example" },
  },
  {
    name: "PASSTHROUGH of a name of nobody",
    port: ports.pass,
    serverName: "other.example",
    expected: { status: "refused" },
  },
  {
    name: "TLS that ends here around other bytes",
    port: ports.tls,
    serverName: "site.example",
    host: "echo",
    expected: { status: 200, shown: "site.example" },
    body: /"version":"v2"/,
    http1Alone: "the bytes go on to an application of HTTP/1.1 as they are",
  },
  {
    name: "the same for another name",
    port: ports.tls,
    serverName: "other.example",
    host: "echo",
    expected: { status: "refused" },
  },
  {
    // Where it leads to somebody: tests/parity/east-west.test.ts.
    name: "AUTO_PASSTHROUGH to workloads that take no mutual TLS",
    port: ports.auto,
    serverName: autoName,
    more: { alpn: ["istio", "http/1.1"] },
    expected: { status: "refused" },
  },
  {
    name: "AUTO_PASSTHROUGH of a client that is no proxy of a mesh",
    port: ports.auto,
    serverName: autoName,
    host: "site.example",
    expected: { status: "refused" },
  },
  {
    name: "AUTO_PASSTHROUGH to a Service that is not there",
    port: ports.auto,
    serverName: "outbound_.80_._.nobody.parity.svc.cluster.local",
    more: { alpn: ["istio", "http/1.1"] },
    expected: { status: "refused" },
  },
];

let mesh: ParityMesh;
let material: Material;

before(
  async () => {
    const made = await makeMaterial();
    mesh = await ParityMesh.start({ "gateway-tls.yaml": manifests(made) });
    material = { ...made, workload: await workloadOf("side-tulle") };
  },
  { timeout: 120_000 },
);
after(() => mesh?.stop());

function call(row: Row, proxy: Proxy, version: HttpVersion): Promise<TlsOutcome> {
  const client = row.client?.(material);
  const host = row.host ?? row.serverName ?? "site.example";
  const { headers, body } = http2Request("gateway", "/v1/ok", { host });
  const { alpn = ["http/1.1"] } = row.more ?? {};
  return tlsRequest({
    host: mesh.podOf("gateway", proxy).address,
    port: row.port,
    ...(row.serverName === undefined ? {} : { serverName: row.serverName }),
    ...(client === undefined ? {} : { clientCertificate: client }),
    ...row.more,
    alpn: alpn.map((name) => alpnOf(name, version)),
    request: version === "HTTP/1.1" ? get(host) : { headers: { ...headers, ":scheme": "https" }, body },
  });
}

function alpnOf(name: string, version: HttpVersion): string {
  return name === "http/1.1" && version === "HTTP/2" ? "h2" : name;
}

describe("the same on both proxies", () => {
  for (const row of rows) {
    const { name, expected, statusOfTulleOverHttp2: own, http1Alone, body } = row;
    const { alpn } = expected;
    for (const version of http1Alone === undefined ? versions : (["HTTP/1.1"] as const)) {
      for (const proxy of proxies) {
        test(`${name}, ${version}, ${proxy}`, async () => {
          const outcome = await call(row, proxy, version);
          const isOwn = own !== undefined && version === "HTTP/2" && proxy === "tulle";
          const wanted = { ...expected, ...(alpn && { alpn: alpnOf(alpn, version) }), ...(isOwn && { status: own }) };
          for (const [field, value] of Object.entries(wanted)) {
            assert.equal(outcome[field as keyof TlsOutcome], value, `${field}: ${JSON.stringify(outcome)}`);
          }
          if (body !== undefined) assert.match(outcome.body, body);
        });
      }
    }
  }
});

describe("plain text", () => {
  const exchange = async (proxy: Proxy, port: number, bytes: string): Promise<string> => {
    const { received } = await exchangeBytes({
      host: mesh.podOf("gateway", proxy).address,
      port,
      from: "127.96.0.1",
      bytes,
    });
    return received;
  };

  const redirected = { host: "site.example:8081" };
  const redirects = callRows("gateway", [["a redirect to https", "/a/b?c=d", redirected, { status: 301 }]]);

  for (const proxy of proxies) {
    for (const redirect of redirects) {
      test(`${redirect.name}, ${proxy}`, async () => {
        const { answers } = await mesh.makeCall({ ...redirect, port: ports.redirect }, proxy, "127.96.0.1");
        assert.equal(answers[0]!.status, redirect.expected.status);
        assert.equal(new Map(answers[0]!.headers).get("location"), "https://site.example:8081/a/b?c=d");
      });
    }

    test(`TCP passes, ${proxy}`, async () => {
      const received = await exchange(proxy, ports.tcp, get("echo"));
      assert.match(received, /^HTTP\/1.1 200 [^]*"version":"v2"/);
    });

    test(`plain text at a TLS port is closed, ${proxy}`, async () => {
      const received = await exchange(proxy, ports.https, get("site.example")).catch(() => "");
      assert.equal(received, "");
    });
  }
});

describe("while a Secret changes", () => {
  for (const proxy of proxies) {
    test(`no connection is dropped, ${proxy}`, async () => {
      const folder = await mkdtemp(path.join(tmpdir(), "tulle-secrets-"));
      try {
        await replaceUnderLoad(proxy, folder);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    });
  }
});

/** Connections are opened all the while, two of each version at a time; each asks once and has to be answered. */
async function replaceUnderLoad(proxy: Proxy, folder: string): Promise<void> {
  const row: Row = { name: "", port: ports.https, serverName: "replaced.example", expected: {} };
  const shown = new Map<string, number>();
  const failures: TlsOutcome[] = [];
  const over = new AbortController();
  const client = async (version: HttpVersion): Promise<void> => {
    while (!over.signal.aborted) {
      const outcome = await call(row, proxy, version);
      if (outcome.status !== 200) failures.push(outcome);
      shown.set(outcome.shown ?? "none", (shown.get(outcome.shown ?? "none") ?? 0) + 1);
    }
  };
  const clients = [...versions, ...versions].map(client);
  // One connection stays open through all of it, on the certificate that it began with.
  const kept = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const keptPorts = new Set<number | undefined>();
  const rotations = Array.from({ length: 3 }, (_, index) => `${proxy}-${index}`);
  try {
    keptPorts.add(await keptRequest(proxy, kept));
    for (const commonName of rotations) {
      const next = await testCertificate({ commonName, names: ["DNS:replaced.example"] });
      const file = path.join(folder, `${commonName}.json`);
      await writeFile(file, JSON.stringify(secret("replaced", pair(next))));
      await mesh.tulle("apply", "-f", file);
      await waitFor(() => (shown.get(commonName) ?? 0) > 20, { what: `the certificate ${commonName}` });
      keptPorts.add(await keptRequest(proxy, kept));
    }
  } finally {
    over.abort();
    await Promise.all(clients);
    kept.destroy();
  }
  assert.deepEqual(failures, []);
  assert.equal(keptPorts.size, 1, "the open connection was not ended");
}

/** The client's port of the connection that the answer came by. */
function keptRequest(proxy: Proxy, agent: Agent): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const { address: host } = mesh.podOf("gateway", proxy);
  const headers = { host: "replaced.example" };
  const outgoing = request({ host, port: ports.https, path: "/v1/ok", servername: "replaced.example", headers, agent });
  outgoing.once("response", (response) => {
    const { localPort } = response.socket;
    response.resume();
    response.once("end", () => {
      if (response.statusCode === 200) resolve(localPort);
      else reject(new Error(`status ${response.statusCode}`));
    });
  });
  outgoing.once("error", reject);
  outgoing.end();
  return promise;
}

async function workloadOf(app: string): Promise<TestCertificate> {
  const read = await readWorkloadCertificate(mesh.stateFile(mesh.pod(app), "workload-certificate.json"), Date.now());
  assert.ok(read?.ok, JSON.stringify(read));
  return { certificate: read.certificate.chainPem, key: read.certificate.keyPem };
}
