// The stream of configuration as its bootstrap asks for it: TLS to the server, by the same rules as to any upstream.
// The same bootstrap goes to a stock Envoy, whose own behaviour is the oracle.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import type http2 from "node:http2";
import os from "node:os";
import path from "node:path";
import { after, type TestContext, test } from "node:test";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { inTime, startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { parseBootstrap } from "../bootstrap/read-bootstrap.ts";
import { type IssuedIdentity, selfSigned, testAuthority } from "../testing/test-authority.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";
import { extension, http2Options, inline, loopback } from "../testing/envoy-json.ts";
import { emptyCluster, packed, startXdsStage, typeUrls, type XdsStage } from "../testing/xds-stage.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-secure-streams-"));
after(() => fs.rmSync(folder, { recursive: true }));

const hourMs = 3_600_000;
const authority = await testAuthority();
const serverUri = "spiffe://cluster.local/ns/istio-system/sa/istiod";
const good = await authority.issue({ uri: serverUri, dns: ["xds.test", "localhost"] });
const client = await authority.issue({ uri: "spiffe://cluster.local/ns/shop/sa/web" });
const expired = await authority.issue({
  uri: serverUri,
  dns: ["xds.test"],
  notBeforeMs: Date.now() - 2 * hourMs,
  notAfterMs: Date.now() - hourMs,
});
const itself = await selfSigned(serverUri);
const stranger = await (await testAuthority("foreign.local")).issue({ uri: serverUri, dns: ["xds.test"] });

const shows = ({ chainPem, keyPem }: IssuedIdentity): http2.SecureServerOptions => ({ cert: chainPem, key: keyPem });
const demands = { requestCert: true, rejectUnauthorized: true, ca: authority.rootPem };
const certificates = ({ chainPem, keyPem }: IssuedIdentity): object => ({
  tls_certificates: [{ certificate_chain: inline(chainPem), private_key: inline(keyPem) }],
});
const trusts = { trusted_ca: inline(authority.rootPem) };
const isServer = { match_typed_subject_alt_names: [{ san_type: "DNS", matcher: { exact: "xds.test" } }] };

const tlsSocket = (common: object, more: object = {}): object => ({
  name: "envoy.transport_sockets.tls",
  typed_config: {
    "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
    common_tls_context: common,
    ...more,
  },
});
const mutual = tlsSocket(
  { ...certificates(client), validation_context: { ...trusts, ...isServer } },
  { sni: "xds.test" },
);

interface ClusterShape {
  readonly transport_socket?: object | undefined;
  readonly ports: readonly number[];
  readonly more?: object;
}

const grpcCluster = (name: string, { ports, transport_socket, more }: ClusterShape): object => ({
  name,
  type: "STATIC",
  connect_timeout: "2s",
  typed_extension_protocol_options: http2Options,
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: ports.map((port) => ({ endpoint: { address: loopback(port) } })) }],
  },
  ...(transport_socket !== undefined && { transport_socket }),
  ...more,
});

const bootstrapOf = (clusters: readonly object[], service: object = { envoy_grpc: { cluster_name: "xds" } }): string =>
  JSON.stringify({
    node: { id: "a", cluster: "b" },
    admin: { address: loopback(0) },
    dynamic_resources: {
      ads_config: { api_type: "GRPC", transport_api_version: "V3", grpc_services: [service] },
      cds_config: { ads: {}, resource_api_version: "V3" },
    },
    static_resources: { clusters },
  });

/** A server whose first answer is one cluster. */
const startServer = (tls?: http2.SecureServerOptions): Promise<XdsStage> =>
  startXdsStage({
    ...(tls !== undefined && { tls }),
    onRequest: (request, stream) => {
      if (request.typeUrl !== typeUrls.clusters) return;
      if (request.responseNonce === "") stream.send(typeUrls.clusters, "1", [emptyCluster("from-xds")]);
    },
  });

const acknowledged = ({ streams }: XdsStage): boolean =>
  streams.some(({ requests }) => requests.some(({ versionInfo }) => versionInfo === "1"));

interface Ours {
  readonly proxy: RunningProxy;
  readonly log: LogEntry[];
  readonly reasons: () => string;
}

async function startOurs(t: TestContext, bootstrap: string): Promise<Ours> {
  const log: LogEntry[] = [];
  const logging = new Logging({ level: "debug", sink: (entry) => log.push(entry) });
  const proxy = await inTime(
    runProxy({ bootstrap: parseBootstrap(bootstrap, "b.json"), logging }),
    "the proxy to start",
  );
  t.after(() => inTime(proxy.close(), "the proxy to close"));
  const reasons = (): string =>
    log.flatMap(({ message, fields }) => (/stream ended/.test(message) ? [String(fields?.["reason"])] : [])).join("\n");
  return { proxy, log, reasons };
}

async function page(port: number, target: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  http
    .get({ host: "127.0.0.1", port, path: target, agent: false }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve(body));
    })
    .on("error", reject);
  return promise;
}

let envoys = 0;

/** What a stock Envoy makes of the same: whether it got its clusters, when it has tried twice at least. */
async function envoyConnects(t: TestContext, bootstrap: string, server: XdsStage): Promise<boolean> {
  const name = path.join(folder, `envoy-${(envoys += 1)}`);
  fs.writeFileSync(`${name}.json`, bootstrap);
  const args = [
    "-c",
    `${name}.json`,
    "--use-dynamic-base-id",
    "--concurrency",
    "1",
    "--admin-address-path",
    `${name}.admin`,
  ];
  const envoy = await startProcess(await envoyPath(), [...args, "-l", "warning"]);
  t.after(() => envoy.stop());
  return waitFor(
    async () => {
      if (acknowledged(server)) return "connects";
      const port = Number(fs.readFileSync(`${name}.admin`, "utf8").split(":").at(-1));
      const tries = Number(
        /upstream_cx_total: (\d+)/.exec(await page(port, "/stats?filter=cluster.xds.upstream_cx_total"))?.[1],
      );
      return tries > 2 && "is refused";
    },
    { what: "Envoy to connect or to give up twice", details: () => envoy.output() },
  ).then((outcome) => outcome === "connects");
}

interface Row {
  readonly name: string;
  /** Undefined = in the clear. */
  readonly server: http2.SecureServerOptions | undefined;
  readonly socket: object | undefined;
  /** Undefined = connects. */
  readonly refused?: RegExp;
  readonly envoyIsRefused?: boolean;
  readonly client?: { readonly names?: string; readonly serverName?: string };
}

const rows: readonly Row[] = [
  {
    name: "mutual TLS",
    server: { ...shows(good), ...demands },
    socket: mutual,
    client: { names: "URI:spiffe://cluster.local/ns/shop/sa/web", serverName: "xds.test" },
  },
  {
    name: "a server that asks for a certificate, and a client without one",
    server: { ...shows(good), ...demands },
    socket: tlsSocket({ validation_context: { ...trusts, ...isServer } }),
    refused: /HANDSHAKE_FAILURE|CERTIFICATE_REQUIRED|ended|reset/,
  },
  {
    name: "a server of another name",
    server: shows(client),
    socket: mutual,
    refused: /CERTIFICATE_VERIFY_FAILED.*SAN/,
  },
  {
    name: "a server whose certificate is over",
    server: shows(expired),
    socket: mutual,
    refused: /certificate has expired/,
  },
  {
    name: "a server that vouches for itself",
    server: shows(itself),
    socket: mutual,
    refused: /CERTIFICATE_VERIFY_FAILED/,
  },
  {
    name: "a server of another authority",
    server: shows(stranger),
    socket: mutual,
    refused: /CERTIFICATE_VERIFY_FAILED/,
  },
  { name: "a server in the clear", server: undefined, socket: mutual, refused: /WRONG_VERSION_NUMBER/ },
  { name: "a client in the clear", server: shows(good), socket: undefined, refused: /./ },
  {
    name: "the hash of another certificate",
    server: shows(good),
    socket: tlsSocket({ validation_context: { ...trusts, verify_certificate_hash: [client.hash] } }),
    refused: /CERTIFICATE_VERIFY_FAILED/,
  },
  {
    name: "the key of that certificate",
    server: shows(good),
    socket: tlsSocket({ validation_context: { ...trusts, verify_certificate_spki: [good.spki] } }),
  },
  {
    name: "a server of TLS 1.3 alone",
    server: { ...shows(good), minVersion: "TLSv1.3" },
    socket: mutual,
    // Its upstreams are offered 1.2 alone unless it is told otherwise.
    envoyIsRefused: true,
  },
  {
    name: "a server of TLS 1.3 alone, and a client that is told to speak it",
    server: { ...shows(good), ...demands, minVersion: "TLSv1.3" },
    socket: tlsSocket({
      ...certificates(client),
      tls_params: { tls_maximum_protocol_version: "TLSv1_3" },
      validation_context: { ...trusts, ...isServer },
    }),
  },
];

for (const row of rows) {
  test(`to the xDS server: ${row.name}`, async (t) => {
    const server = await startServer(row.server);
    t.after(() => server.stop());
    const bootstrap = bootstrapOf([grpcCluster("xds", { ports: [server.port], transport_socket: row.socket })]);
    const { reasons } = await startOurs(t, bootstrap);
    if (row.refused === undefined)
      await waitFor(() => acknowledged(server), { what: "the clusters", details: reasons });
    else await waitFor(() => row.refused!.test(reasons()), { what: String(row.refused), details: reasons });
    assert.equal(acknowledged(server), row.refused === undefined);
    // A certificate that is refused has not been told who we are and what we want.
    if (row.refused !== undefined)
      assert.deepEqual(
        server.streams.flatMap(({ requests }) => requests),
        [],
      );
    if (row.client?.names !== undefined) assert.equal(server.streams[0]!.clientNames, row.client.names);
    if (row.client?.serverName !== undefined) assert.equal(server.streams[0]!.serverName, row.client.serverName);
  });
}

test("Envoy connects to the same servers, and refuses the same", async (t) => {
  const outcomes = rows.map(async (row) => {
    const server = await startServer(row.server);
    t.after(() => server.stop());
    const bootstrap = bootstrapOf([grpcCluster("xds", { ports: [server.port], transport_socket: row.socket })]);
    return [row.name, await envoyConnects(t, bootstrap, server)] as const;
  });
  assert.deepEqual(
    await Promise.all(outcomes),
    rows.map(({ name, refused, envoyIsRefused }) => [name, refused === undefined && envoyIsRefused !== true]),
  );
});

test("where a host does not answer, the next one of the cluster is asked", async (t) => {
  const server = await startServer({ ...shows(good), ...demands });
  const wrong = await startServer(shows(client));
  t.after(() => Promise.all([server.stop(), wrong.stop()]));
  const cluster = { ports: [1, wrong.port, server.port], transport_socket: mutual };
  const { proxy, reasons } = await startOurs(t, bootstrapOf([grpcCluster("xds", cluster)]));
  await waitFor(() => acknowledged(server), { what: "the clusters", details: reasons });
  assert.deepEqual(wrong.streams, []);
  await server.stop();
  await waitFor(() => /cannot connect.*127\.0\.0\.1:1: .*;.*;/.test(reasons()), {
    what: "what each host said",
    details: reasons,
  });
  await proxy.close();
});

test("metadata and authority go along, and nothing else knows the token", async (t) => {
  const server = await startServer(shows(good));
  t.after(() => server.stop());
  const service = {
    envoy_grpc: { cluster_name: "xds", authority: "xds.example" },
    initial_metadata: [
      { key: "Authorization", value: "Bearer s3cret" },
      { key: "tenant", value: "100%% ours" },
    ],
  };
  const socket = tlsSocket({ validation_context: { ...trusts, ...isServer } });
  const { log } = await startOurs(
    t,
    bootstrapOf([grpcCluster("xds", { ports: [server.port], transport_socket: socket })], service),
  );
  await waitFor(() => acknowledged(server), { what: "the clusters" });
  const { headers } = server.streams[0]!;
  assert.equal(headers[":authority"], "xds.example");
  assert.equal(headers["authorization"], "Bearer s3cret");
  assert.equal(headers["tenant"], "100% ours");
  assert.doesNotMatch(JSON.stringify(log), /s3cret/);
});

const sslCredentials = { ssl_credentials: { root_certs: inline(authority.rootPem) } };
const googleRows: readonly {
  readonly name: string;
  readonly target: (port: number) => string;
  readonly credentials: object;
  readonly demands?: http2.SecureServerOptions;
  readonly refused?: RegExp;
}[] = [
  { name: "TLS by a name", target: (port: number) => `dns:///localhost:${port}`, credentials: sslCredentials },
  { name: "without a scheme", target: (port: number) => `localhost:${port}`, credentials: sslCredentials },
  {
    name: "mutual TLS",
    target: (port: number) => `localhost:${port}`,
    credentials: {
      ssl_credentials: {
        root_certs: inline(authority.rootPem),
        cert_chain: inline(client.chainPem),
        private_key: inline(client.keyPem),
      },
    },
    demands,
  },
  {
    name: "an address that the certificate does not name",
    target: (port: number) => `ipv4:127.0.0.1:${port}`,
    credentials: sslCredentials,
    refused: /CERTIFICATE_VERIFY_FAILED/,
  },
  {
    name: "a server of another authority, in the public roots' eyes",
    target: (port: number) => `localhost:${port}`,
    credentials: { ssl_credentials: {} },
    refused: /CERTIFICATE_VERIFY_FAILED/,
  },
];
for (const row of googleRows) {
  test(`google_grpc: ${row.name}`, async (t) => {
    const server = await startServer({ ...shows(good), ...row.demands });
    t.after(() => server.stop());
    const service = {
      google_grpc: {
        target_uri: row.target(server.port),
        stat_prefix: "xds",
        channel_credentials: row.credentials,
        call_credentials: [{ access_token: "t0ken" }],
      },
    };
    const { proxy, reasons } = await startOurs(t, bootstrapOf([], service));
    for (const target of ["/clusters", "/clusters?format=json", "/config_dump?resource=static_clusters"]) {
      assert.doesNotMatch(await page(proxy.adminAddress!.port, target), /google_grpc:/, "no cluster of the user's");
    }
    if (row.refused !== undefined) {
      await waitFor(() => row.refused!.test(reasons()), { what: String(row.refused), details: reasons });
      assert.deepEqual(server.streams, []);
      return;
    }
    await waitFor(() => acknowledged(server), { what: "the clusters", details: reasons });
    assert.equal(server.streams[0]!.headers["authorization"], "Bearer t0ken");
  });
}

const secret = (name: string, json: object): ReturnType<typeof packed> => packed(SecretSchema, { name, ...json });
const tlsCertificate = ({ chainPem, keyPem }: IssuedIdentity): object => ({
  tls_certificate: { certificate_chain: inline(chainPem), private_key: inline(keyPem) },
});

test("keys by SDS come over mutual TLS, from another cluster, and open the stream of configuration", async (t) => {
  const server = await startServer({ ...shows(good), ...demands });
  const secrets = await startXdsStage({
    tls: { ...shows(good), ...demands },
    onRequest: (request, stream) => {
      if (request.responseNonce !== "") return;
      stream.send(typeUrls.secrets, "1", [
        secret("own", tlsCertificate(client)),
        secret("roots", { validation_context: trusts }),
      ]);
    },
  });
  t.after(() => Promise.all([server.stop(), secrets.stop()]));
  const sds = {
    resource_api_version: "V3",
    api_config_source: {
      api_type: "GRPC",
      transport_api_version: "V3",
      grpc_services: [{ envoy_grpc: { cluster_name: "sds" }, initial_metadata: [{ key: "tenant", value: "a" }] }],
    },
  };
  const bySds = tlsSocket({
    tls_certificate_sds_secret_configs: [{ name: "own", sds_config: sds }],
    combined_validation_context: {
      default_validation_context: isServer,
      validation_context_sds_secret_config: { name: "roots", sds_config: sds },
    },
  });
  const clusters = [
    grpcCluster("xds", { ports: [server.port], transport_socket: bySds }),
    grpcCluster("sds", { ports: [secrets.port], transport_socket: mutual }),
  ];
  const { reasons } = await startOurs(t, bootstrapOf(clusters));
  await waitFor(() => acknowledged(server), { what: "the clusters", details: reasons });
  assert.match(secrets.streams[0]!.clientNames, /sa\/web/);
  assert.equal(secrets.streams[0]!.headers["tenant"], "a");
});

test("certificates in files, by a file of secrets: a new one serves the next connection, a bad one none", async (t) => {
  const server = await startServer({ ...shows(good), ...demands });
  t.after(() => server.stop());
  const own = fs.mkdtempSync(path.join(folder, "files-"));
  const file = (name: string): string => path.join(own, name);
  const put = (name: string, text: string): void => {
    fs.writeFileSync(file(`.${name}`), text);
    fs.renameSync(file(`.${name}`), file(name));
  };
  put("cert.pem", client.chainPem);
  put("key.pem", client.keyPem);
  put("ca.pem", authority.rootPem);
  const type = extension("transport_sockets.tls.v3.Secret");
  const certificate = { certificate_chain: { filename: file("cert.pem") }, private_key: { filename: file("key.pem") } };
  put("cert.json", JSON.stringify({ resources: [{ "@type": type, name: "own", tls_certificate: certificate }] }));
  put(
    "ca.yaml",
    `resources: [{"@type": ${type}, name: roots, validation_context: {trusted_ca: {filename: ${file("ca.pem")}}}}]`,
  );
  const from = (name: string): object => ({ path_config_source: { path: file(name) }, resource_api_version: "V3" });
  const socket = tlsSocket({
    tls_certificate_sds_secret_configs: [{ name: "own", sds_config: from("cert.json") }],
    validation_context_sds_secret_config: { name: "roots", sds_config: from("ca.yaml") },
  });
  const { log, reasons } = await startOurs(
    t,
    bootstrapOf([grpcCluster("xds", { ports: [server.port], transport_socket: socket })]),
  );
  await waitFor(() => acknowledged(server), { what: "the clusters", details: reasons });
  assert.match(server.streams[0]!.clientNames, /sa\/web/);
  // Half a change: the key does not fit.
  const next = await authority.issue({ uri: "spiffe://cluster.local/ns/shop/sa/next" });
  put("cert.pem", next.chainPem);
  await waitFor(() => log.some(({ message }) => /files have changed and cannot be used/.test(message)), {
    what: "the word of it",
  });
  server.streams.at(-1)!.end();
  await waitFor(() => server.streams.length === 2, { what: "the next stream", details: reasons });
  assert.match(server.streams[1]!.clientNames, /sa\/web/);
  put("key.pem", next.keyPem);
  await waitFor(
    () => {
      server.streams.at(-1)!.end();
      return /sa\/next/.test(server.streams.at(-1)!.clientNames);
    },
    { what: "a stream with the next certificate", details: reasons, intervalMs: 100 },
  );
});
