// Secrets on real streams: what needs them warms, a rotation reaches new connections alone, a bad one is refused by
// name.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { type LogEntry, Logging } from "@tulle/telemetry";
import {
  type AdsConnection,
  type EncodedResource,
  encodeResource,
  type Rejection,
  type ResourceTypeName,
  serveAds,
} from "@tulle/xds";
import { BootstrapSchema } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { adsConfig } from "../testing/ads-bootstrap.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import { type IssuedIdentity, type TestAuthority, testAuthority } from "../testing/test-authority.ts";
import { type RunningProxy, runProxy } from "../run-proxy.ts";

const extension = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const socketAddress = (port_value: number): object => ({ socket_address: { address: "127.0.0.1", port_value } });
const ads = { ads: {}, resource_api_version: "V3" };
/** As Istio's sidecars fetch their certificate. */
const agent = {
  api_config_source: {
    api_type: "GRPC",
    transport_api_version: "V3",
    set_node_on_first_message_only: true,
    grpc_services: [{ envoy_grpc: { cluster_name: "sds-grpc" } }],
  },
  resource_api_version: "V3",
  initial_fetch_timeout: "0s",
};

function resource(kind: ResourceTypeName, json: object): EncodedResource {
  return encodeResource(resourceSchemas[kind], fromConfiguration(resourceSchemas[kind], json));
}

const bytes = (text: string): object => ({ inline_bytes: Buffer.from(text).toString("base64") });

const certificateSecret = (name: string, { chainPem, keyPem }: Pick<IssuedIdentity, "chainPem" | "keyPem">) =>
  resource("SDS", { name, tls_certificate: { certificate_chain: bytes(chainPem), private_key: bytes(keyPem) } });
const rootSecret = (name: string, rootPem: string): EncodedResource =>
  resource("SDS", { name, validation_context: { trusted_ca: bytes(rootPem) } });

const upstreamTls = (sds: object, names: readonly [certificate: string, root: string]): object => ({
  name: "envoy.transport_sockets.tls",
  typed_config: {
    "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
    common_tls_context: {
      tls_certificate_sds_secret_configs: [{ name: names[0], sds_config: sds }],
      combined_validation_context: {
        default_validation_context: {
          match_typed_subject_alt_names: [{ san_type: "URI", matcher: { prefix: "spiffe://cluster.local/" } }],
        },
        validation_context_sds_secret_config: { name: names[1], sds_config: sds },
      },
    },
  },
});

const cluster = (name: string, port: number, transport_socket?: object): EncodedResource =>
  resource("CDS", {
    name,
    type: "STATIC",
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
    },
    ...(transport_socket !== undefined && { transport_socket }),
    // New connections now and then, which show what is current.
    max_requests_per_connection: 5,
  });

const listener = (clusterName: string): EncodedResource =>
  resource("LDS", {
    name: "l",
    address: socketAddress(0),
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: "l",
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [{ match: { prefix: "/" }, route: { cluster: clusterName } }],
                  },
                ],
              },
              http_filters: [{ name: "router", typed_config: { "@type": extension("filters.http.router.v3.Router") } }],
            },
          },
        ],
      },
    ],
  });

interface Stage {
  readonly proxy: RunningProxy;
  readonly log: LogEntry[];
  readonly rejections: { readonly from: "ads" | "sds"; readonly message: string }[];
  /** Names of secrets that the proxy asks for, by stream. */
  readonly asked: { readonly ads: Set<string>; readonly sds: Set<string> };
  set(type: ResourceTypeName, ...resources: EncodedResource[]): void;
  /** Of the agent on its socket. */
  setAgentSecrets(...resources: EncodedResource[]): void;
  get(target?: string): Promise<string>;
  admin(target: string): Promise<string>;
}

async function startServer(
  t: TestContext,
  address: { readonly host: string; readonly port: number } | { readonly path: string },
  from: "ads" | "sds",
  stage: Pick<Stage, "rejections" | "asked">,
) {
  const declared = new Map<ResourceTypeName, Map<string, EncodedResource>>();
  const connections = new Set<AdsConnection>();
  const server = await serveAds({
    address,
    ...(from === "sds" && { service: "sds" as const }),
    handlers: {
      onConnect: (opened) => {
        connections.add(opened);
        for (const [kind, resources] of declared) opened.set(kind, resources);
      },
      onSubscribe: (_connection, { type, names }) => {
        if (type !== "SDS" || names === "*") return;
        stage.asked[from].clear();
        for (const name of names) stage.asked[from].add(name);
      },
      onNack: (_connection, { message }: Rejection) => stage.rejections.push({ from, message }),
      onDisconnect: (closed) => connections.delete(closed),
    },
  });
  t.after(() => server.close());
  const set = (kind: ResourceTypeName, resources: readonly EncodedResource[]): void => {
    declared.set(kind, new Map(resources.map((one) => [one.name, one])));
    for (const connection of connections) connection.set(kind, declared.get(kind)!);
  };
  return { server, set };
}

async function startStage(
  t: TestContext,
  first: Partial<Record<ResourceTypeName, EncodedResource[]>>,
  agentSecrets: readonly EncodedResource[] = [],
): Promise<Stage> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-sds-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const shared = { rejections: [], asked: { ads: new Set<string>(), sds: new Set<string>() } };
  const controlPlane = await startServer(t, { host: "127.0.0.1", port: 0 }, "ads", shared);
  const socket = path.join(folder, "sds.sock");
  const sds = await startServer(t, { path: socket }, "sds", shared);
  for (const [kind, resources] of Object.entries(first)) controlPlane.set(kind as ResourceTypeName, resources);
  sds.set("SDS", agentSecrets);
  assert.ok("port" in controlPlane.server.address);
  const http2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
      explicit_http_config: { http2_protocol_options: {} },
    },
  };
  const grpcCluster = (name: string, address: object): object => ({
    name,
    type: "STATIC",
    typed_extension_protocol_options: http2,
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  });
  const bootstrap = fromConfiguration(BootstrapSchema, {
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
    admin: { address: socketAddress(0) },
    dynamic_resources: {
      ads_config: adsConfig,
      cds_config: { ...ads, initial_fetch_timeout: "0s" },
      lds_config: { ...ads, initial_fetch_timeout: "0s" },
    },
    static_resources: {
      clusters: [
        grpcCluster("xds", socketAddress(controlPlane.server.address.port)),
        grpcCluster("sds-grpc", { pipe: { path: socket } }),
      ],
    },
  });
  const log: LogEntry[] = [];
  const proxy = await runProxy({
    bootstrap,
    env: {},
    drainTimeMs: 100,
    logging: new Logging({ sink: (entry) => log.push(entry) }),
  });
  t.after(() => proxy.close());
  return {
    ...shared,
    proxy,
    log,
    set: (kind, ...resources) => controlPlane.set(kind, resources),
    setAgentSecrets: (...resources) => sds.set("SDS", resources),
    get: (target = "/") => get(proxy.listenerAddresses().get("l")![0]!.port, target),
    admin: (target) => get(proxy.adminAddress!.port, target),
  };
}

function get(port: number, target: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: "127.0.0.1", port, path: target, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve(`${response.statusCode} ${body}`));
    });
    request.on("error", reject);
  });
}

/** Answers with the serial number of the client's certificate. */
async function mutualHost(
  t: TestContext,
  authority: TestAuthority,
  identity: IssuedIdentity,
): Promise<net.AddressInfo> {
  const options = {
    cert: identity.chainPem,
    key: identity.keyPem,
    ca: authority.rootPem,
    requestCert: true,
    rejectUnauthorized: true,
  };
  const server = https.createServer(options, (request, response) => {
    response.end((request.socket as TLSSocket).getPeerX509Certificate()?.serialNumber);
  });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return server.address() as net.AddressInfo;
}

const warmingClusters = (log: readonly LogEntry[]): unknown =>
  log.findLast(({ message }) => message === "clusters received")?.fields?.["warming"];

test("a cluster warms until both secrets of the agent have come, and its requests show them", async (t) => {
  const authority = await testAuthority();
  const [host, client] = [await authority.issue(), await authority.issue()];
  const { port } = await mutualHost(t, authority, host);
  const stage = await startStage(t, {
    CDS: [cluster("c", port, upstreamTls(agent, ["default", "ROOTCA"]))],
    LDS: [listener("c")],
  });
  await waitFor(() => stage.asked.sds.size === 2, { what: "both secrets to be asked for" });
  assert.deepEqual([...stage.asked.sds].sort(), ["ROOTCA", "default"]);
  assert.equal(warmingClusters(stage.log), 1);
  assert.equal(await stage.admin("/ready"), "503 PRE_INITIALIZING\n");
  stage.setAgentSecrets(certificateSecret("default", client));
  await waitFor(async () => (await stage.admin("/config_dump")).includes('"dynamic_active_secrets"'), {
    what: "the first secret",
  });
  assert.equal(await stage.admin("/ready"), "503 PRE_INITIALIZING\n");
  stage.setAgentSecrets(certificateSecret("default", client), rootSecret("ROOTCA", authority.rootPem));
  await stage.proxy.ready;
  assert.equal(await stage.get(), `200 ${client.leaf.serialNumber}`);
  assert.deepEqual(stage.rejections, []);
});

test("a rotated certificate serves new connections, and no request is lost", async (t) => {
  const authority = await testAuthority();
  const [host, first, second] = [await authority.issue(), await authority.issue(), await authority.issue()];
  const { port } = await mutualHost(t, authority, host);
  const root = rootSecret("ROOTCA", authority.rootPem);
  const stage = await startStage(
    t,
    { CDS: [cluster("c", port, upstreamTls(agent, ["default", "ROOTCA"]))], LDS: [listener("c")] },
    [certificateSecret("default", first), root],
  );
  await stage.proxy.ready;
  const answers = new Set<string>();
  const enough = new AbortController();
  const traffic = (async () => {
    while (!enough.signal.aborted)
      for (const answer of await Promise.all([stage.get(), stage.get(), stage.get()])) answers.add(answer);
  })();
  await waitFor(() => answers.has(`200 ${first.leaf.serialNumber}`), { what: "an answer" });
  stage.setAgentSecrets(certificateSecret("default", second), root);
  await waitFor(async () => (await stage.admin("/certs")).includes(second.leaf.serialNumber.toLowerCase()), {
    what: "the new certificate",
  });
  await waitFor(() => answers.has(`200 ${second.leaf.serialNumber}`), { what: "the new certificate on the wire" });
  enough.abort();
  await traffic;
  assert.deepEqual([...answers].sort(), [`200 ${first.leaf.serialNumber}`, `200 ${second.leaf.serialNumber}`].sort());
});

test("secrets of one name from two sources are two, each with its own rotation", async (t) => {
  const authority = await testAuthority();
  const [host, first, second] = [await authority.issue(), await authority.issue(), await authority.issue()];
  const { port } = await mutualHost(t, authority, host);
  const root = rootSecret("ROOTCA", authority.rootPem);
  const names = ["default", "ROOTCA"] as const;
  const stage = await startStage(
    t,
    {
      CDS: [cluster("c", port, upstreamTls(agent, names)), cluster("d", port, upstreamTls(ads, names))],
      LDS: [listener("c")],
      SDS: [certificateSecret("default", first), root],
    },
    [certificateSecret("default", first), root],
  );
  await stage.proxy.ready;
  assert.equal(await stage.get(), `200 ${first.leaf.serialNumber}`);
  // The same rotation, which the other source hears of first.
  stage.set("SDS", certificateSecret("default", second), root);
  const shown = second.leaf.serialNumber.toLowerCase();
  await waitFor(async () => (await stage.admin("/certs")).includes(shown), { what: "the control plane's secret" });
  stage.setAgentSecrets(certificateSecret("default", second), root);
  await waitFor(async () => (await stage.get()) === `200 ${second.leaf.serialNumber}`, { what: "the agent's secret" });
  const shownSecrets = async (): Promise<number> => {
    interface Section {
      readonly dynamic_active_secrets?: readonly { readonly name: string }[];
    }
    const dump = JSON.parse((await stage.admin("/config_dump")).slice(4)) as { readonly configs: readonly Section[] };
    const secrets = dump.configs.flatMap(({ dynamic_active_secrets: list }) => list ?? []);
    return secrets.filter(({ name }) => name === "default").length;
  };
  assert.equal(await shownSecrets(), 2);
  // The one goes, the other stays with its record and its statistics.
  stage.set("CDS", cluster("c", port, upstreamTls(agent, names)));
  await waitFor(async () => (await shownSecrets()) === 1, { what: "one secret" });
  assert.match(await stage.admin("/stats?filter=sds.default.update_success"), /: [1-9]/);
});

test("a secret whose directory cannot be watched is refused, as by Envoy, and served when it is sent with one that can", async (t) => {
  const authority = await testAuthority();
  const { port } = await mutualHost(t, authority, await authority.issue());
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-watched-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  fs.writeFileSync(path.join(folder, "ca.pem"), authority.rootPem);
  const absent = path.join(folder, "absent");
  const roots = (directory: string): EncodedResource => {
    const files = { trusted_ca: { filename: path.join(folder, "ca.pem") }, watched_directory: { path: directory } };
    return resource("SDS", { name: "ROOTCA", validation_context: files });
  };
  const client = await authority.issue();
  const tls = upstreamTls(ads, ["default", "ROOTCA"]);
  const first = { CDS: [cluster("c", port, tls)], LDS: [listener("c")] };
  const stage = await startStage(t, { ...first, SDS: [certificateSecret("default", client), roots(absent)] });
  await waitFor(() => stage.rejections.length > 0, { what: "the refusal" });
  assert.match(stage.rejections[0]!.message, /cannot watch the directory .*absent/);
  fs.mkdirSync(absent);
  stage.set("SDS", certificateSecret("default", client), roots(folder));
  await stage.proxy.ready;
  assert.equal(await stage.get(), `200 ${client.leaf.serialNumber}`);
});

test("a bad secret is refused by name, and the one before it stays", async (t) => {
  const authority = await testAuthority();
  const [host, client, other] = [await authority.issue(), await authority.issue(), await authority.issue()];
  const { port } = await mutualHost(t, authority, host);
  const root = rootSecret("ROOTCA", authority.rootPem);
  const stage = await startStage(
    t,
    { CDS: [cluster("c", port, upstreamTls(agent, ["default", "ROOTCA"]))], LDS: [listener("c")] },
    [certificateSecret("default", client), root],
  );
  await stage.proxy.ready;
  const cases = [
    {
      secret: certificateSecret("default", { chainPem: "no PEM", keyPem: client.keyPem }),
      reason: /certificate chain/,
    },
    { secret: certificateSecret("default", { chainPem: client.chainPem, keyPem: "no PEM" }), reason: /private key/ },
    {
      secret: certificateSecret("default", { chainPem: client.chainPem, keyPem: other.keyPem }),
      reason: /KEY_VALUES_MISMATCH/,
    },
  ];
  for (const { secret, reason } of cases) {
    const before = stage.rejections.length;
    stage.setAgentSecrets(secret, root);
    await waitFor(() => stage.rejections.length > before, { what: String(reason) });
    const { from, message } = stage.rejections.at(-1)!;
    assert.equal(from, "sds");
    assert.match(message, /^Error adding\/updating secret\(s\) default: /);
    assert.match(message, reason);
    assert.ok(!message.includes("PRIVATE KEY"), "a refusal quotes no key");
    assert.equal(await stage.get(), `200 ${client.leaf.serialNumber}`);
  }
});

test("secrets over the aggregated stream are forgotten when nothing names them, and fetched again", async (t) => {
  const authority = await testAuthority();
  const [host, client] = [await authority.issue(), await authority.issue()];
  const { port } = await mutualHost(t, authority, host);
  const names = ["kubernetes://shop", "kubernetes://shop-cacert"] as const;
  const stage = await startStage(t, {
    CDS: [cluster("c", port, upstreamTls(ads, names))],
    LDS: [listener("c")],
    SDS: [certificateSecret(names[0], client), rootSecret(names[1], authority.rootPem)],
  });
  await stage.proxy.ready;
  assert.equal(await stage.get(), `200 ${client.leaf.serialNumber}`);
  assert.deepEqual([...stage.asked.ads].sort(), [...names]);
  stage.set("CDS", cluster("c", port));
  await waitFor(async () => !(await stage.admin("/config_dump")).includes("kubernetes://shop"), {
    what: "the secrets to be forgotten",
  });
  stage.set("CDS", cluster("c", port, upstreamTls(ads, names)));
  await waitFor(async () => (await stage.get()) === `200 ${client.leaf.serialNumber}`, { what: "TLS to come back" });
});

test("a secret that does not come within its time is not waited for", async (t) => {
  const authority = await testAuthority();
  const client = await authority.issue();
  const { port } = await mutualHost(t, authority, await authority.issue());
  const impatient = { ...ads, initial_fetch_timeout: "0.05s" };
  const stage = await startStage(t, {
    CDS: [cluster("c", port, upstreamTls(impatient, ["late", "later"]))],
    LDS: [listener("c")],
  });
  await stage.proxy.ready;
  assert.match(await stage.get(), /^503 upstream connect error .*: remote connection failure$/);
  assert.ok(stage.log.some(({ message }) => message === "the secret 'late' did not come in time"));
  stage.set("SDS", certificateSecret("late", client), rootSecret("later", authority.rootPem));
  await waitFor(async () => (await stage.get()) === `200 ${client.leaf.serialNumber}`, { what: "the late secrets" });
});

test("/config_dump shows certificates and no keys, /certs what is shown and trusted", async (t) => {
  const authority = await testAuthority();
  const [host, client] = [await authority.issue(), await authority.issue({ dns: ["client.test"] })];
  const { port } = await mutualHost(t, authority, host);
  const stage = await startStage(
    t,
    { CDS: [cluster("c", port, upstreamTls(agent, ["default", "ROOTCA"]))], LDS: [listener("c")] },
    [certificateSecret("default", client), rootSecret("ROOTCA", authority.rootPem)],
  );
  await stage.proxy.ready;
  const dump = await stage.admin("/config_dump");
  assert.ok(!dump.includes(Buffer.from(client.keyPem).toString("base64")));
  const configs = (JSON.parse(dump.slice(4)) as { configs: Record<string, unknown>[] }).configs;
  const secrets = configs.find((section) => String(section["@type"]).endsWith("SecretsConfigDump"))!;
  const [shown] = (secrets["dynamic_active_secrets"] as { name: string; secret: Record<string, unknown> }[]).filter(
    ({ name }) => name === "default",
  );
  assert.deepEqual((shown!.secret["tls_certificate"] as Record<string, unknown>)["private_key"], {
    inline_bytes: "W3JlZGFjdGVkXQ==",
  });
  const { certificates } = JSON.parse((await stage.admin("/certs")).slice(4)) as {
    certificates: Record<string, Record<string, unknown>[]>[];
  };
  assert.equal(certificates.length, 1);
  const [leaf] = certificates[0]!["cert_chain"]!;
  assert.equal(leaf!["serial_number"], client.leaf.serialNumber.toLowerCase());
  assert.deepEqual(leaf!["subject_alt_names"], [
    { dns: "client.test" },
    { uri: "spiffe://cluster.local/ns/shop/sa/catalog" },
  ]);
  assert.equal(leaf!["days_until_expiration"], "0");
  assert.equal(certificates[0]!["ca_cert"]!.length, 1);
});
