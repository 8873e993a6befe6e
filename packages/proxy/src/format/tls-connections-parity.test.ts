// What logs tell of the connections that a request took, with TLS on both sides, beside a stock Envoy: which they were,
// how long they took, and what was agreed on.
import assert from "node:assert/strict";
import fs from "node:fs";
import https from "node:https";
import { after, before, test } from "node:test";
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, fileAccessLog, inline, loopback, staticCluster } from "../testing/envoy-json.ts";
import { countersOf, type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const operators = [
  "UPSTREAM_CONNECTION_ID",
  "UPSTREAM_CONNECTION_IDS_ATTEMPTED",
  "CONNECTION_ID",
  "UPSTREAM_CONNECTION_POOL_READY_DURATION",
  "DOWNSTREAM_HANDSHAKE_DURATION",
  "UPSTREAM_SERVER_NAME",
  "UPSTREAM_TLS_GROUP",
  "COMMON_DURATION(US_CX_BEG:US_CX_END:ns)",
  "COMMON_DURATION(US_CX_END:US_HS_END:ns)",
  "COMMON_DURATION(DS_HS_BEG:DS_HS_END:ns)",
] as const;
type Line = Readonly<Record<(typeof operators)[number], string>>;
const format = `${operators.map((name) => `%${name}%`).join("\t")}\n`;

const { certificate, key } = await testCertificate({ subject: "/O=server", names: ["DNS:a.example"] });
const transport = (type: string, config: object): object => ({
  name: "tls",
  typed_config: { "@type": extension(`transport_sockets.tls.v3.${type}`), ...config },
});
const groups = ["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768"];
const groupFormat =
  "%REQ(:PATH)%\t%UPSTREAM_TLS_GROUP%\t%DOWNSTREAM_TLS_GROUP%\t%TLS_JA3_FINGERPRINT%\t%TLS_JA4_FINGERPRINT%\n";
const fingerprinting = {
  name: "tls",
  typed_config: {
    "@type": extension("filters.listener.tls_inspector.v3.TlsInspector"),
    enable_ja3_fingerprinting: true,
    enable_ja4_fingerprinting: true,
  },
};

const ownCertificate = { certificate_chain: inline(certificate), private_key: inline(key) };
const below = transport("DownstreamTlsContext", { common_tls_context: { tls_certificates: [ownCertificate] } });
const belowForGroups = transport("DownstreamTlsContext", {
  common_tls_context: { tls_certificates: [ownCertificate], tls_params: { ecdh_curves: groups } },
});
const above = (common_tls_context: object): object =>
  transport("UpstreamTlsContext", { sni: "a.example", common_tls_context });

function bootstrap(port: number, log: string): string {
  const retry_policy = { retry_on: "5xx", num_retries: 1 };
  const manager = connectionManager(
    [
      { match: { path: "/gone" }, direct_response: { status: 410 } },
      { match: { prefix: "/" }, route: { cluster: "app", retry_policy } },
    ],
    { access_log: [fileAccessLog(log, format)] },
  );
  const listener = {
    name: "main",
    address: loopback(0),
    access_log: [fileAccessLog(`${log}.listener`, format)],
    filter_chains: [{ transport_socket: below, filters: [{ name: "last", typed_config: manager }] }],
  };
  const clusters = [staticCluster("app", [port], { transport_socket: above({}) })];
  for (const group of groups) {
    const transport_socket = above({
      tls_params: {
        ecdh_curves: [group],
        tls_minimum_protocol_version: "TLSv1_3",
        tls_maximum_protocol_version: "TLSv1_3",
      },
    });
    clusters.push(staticCluster(group, [port], { transport_socket }));
  }
  const groupManager = connectionManager(
    groups.map((group) => ({ match: { path: `/${group}` }, route: { cluster: group } })),
    { access_log: [fileAccessLog(`${log}.groups`, groupFormat)] },
  );
  const groupListener = {
    name: "groups",
    stat_prefix: "groups",
    address: loopback(0),
    listener_filters: [fingerprinting],
    filter_chains: [{ transport_socket: belowForGroups, filters: [{ name: "last", typed_config: groupManager }] }],
  };
  const listeners = [listener, groupListener];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners, clusters } });
}

let tries = 0;
const host = https.createServer({ cert: certificate, key }, (request, response) => {
  tries += 1;
  // The second try needs another connection.
  if (request.url === "/again" && tries % 2 === 1) response.writeHead(503, { connection: "close" }).end();
  else response.end("ok");
});

let sides: Sides;
before(async () => {
  sides = await startSides(host, 2, bootstrap);
});
after(() => sides?.stop());

const linesOf = (log: string): readonly Line[] =>
  (fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const values = line.split("\t");
      return Object.fromEntries(operators.map((name, index) => [name, values[index]!])) as Line;
    });

/** All over one connection. */
async function linesOfCalls({ ports, log }: Side): Promise<readonly Line[]> {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  for (const path of ["/gone", "/again", "/gone"]) {
    tries = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const options = { host: "127.0.0.1", port: ports.get("main"), path, agent };
    https.get(options, (response) => response.resume().on("end", resolve)).on("error", reject);
    await promise;
  }
  agent.destroy();
  const whole = (): boolean => linesOf(log).length === 3 && linesOf(`${log}.listener`).length === 1;
  await waitFor(whole, { what: "the lines" });
  return [...linesOf(log), ...linesOf(`${log}.listener`)];
}

const kind = (number: string): string => number.replace(/^-?\d+$/, "a number");

/** Of ids and durations only that they are there, and which ids are the same. Envoy knows the last try's alone. */
function comparable(line: Line): object {
  const lastId = line.UPSTREAM_CONNECTION_IDS_ATTEMPTED.split(",").at(-1)!;
  return {
    ...Object.fromEntries(Object.entries(line).map(([name, value]) => [name, kind(value)])),
    UPSTREAM_CONNECTION_IDS_ATTEMPTED: kind(lastId),
    isLast: line.UPSTREAM_CONNECTION_ID === lastId,
    isOwn: line.UPSTREAM_CONNECTION_ID !== line.CONNECTION_ID && line.CONNECTION_ID !== "-",
  };
}

test("both tell the same of each connection", async () => {
  const [ours, envoys] = [await linesOfCalls(sides.ours), await linesOfCalls(sides.envoy)];
  assert.deepEqual(ours.map(comparable), envoys.map(comparable));
  const ids = ours[1]!.UPSTREAM_CONNECTION_IDS_ATTEMPTED.split(",");
  assert.equal(new Set(ids).size, 2, ids.join(","));
  const [first, , last] = ours.map((line) => Number(line.DOWNSTREAM_HANDSHAKE_DURATION));
  // The handshake came before the later requests.
  assert.ok(last! <= first!, `${last}, ${first}`);
});

/** Each cluster asks its host for one group alone, and so does the client of each call. */
async function groupsOf(side: Side): Promise<readonly string[]> {
  for (const group of groups) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const port = side.ports.get("groups");
    const options = { host: "127.0.0.1", port, path: `/${group}`, agent: false, rejectUnauthorized: false };
    https.get({ ...options, ecdhCurve: group }, (response) => response.resume().on("end", resolve)).on("error", reject);
    await promise;
  }
  const file = `${side.log}.groups`;
  const lines = (): readonly string[] => fs.readFileSync(file, "utf8").split("\n").slice(0, -1);
  await waitFor(() => fs.existsSync(file) && lines().length === groups.length, { what: "the lines" });
  return lines();
}

test("both name groups of key exchanges alike, and know a request's client by the same fingerprints", async () => {
  const [ours, envoys] = [await groupsOf(sides.ours), await groupsOf(sides.envoy)];
  assert.deepEqual(ours, envoys);
  const fields = ours.map((line) => line.split("\t"));
  assert.deepEqual(
    fields.map(([, upstream, downstream]) => [upstream, downstream]),
    groups.map((group) => [group, group]),
  );
  for (const [, , , ja3, ja4] of fields)
    assert.match(`${ja3} ${ja4}`, /^[0-9a-f]{32} t13i\d{4}.._[0-9a-f]{12}_[0-9a-f]{12}$/);
  const counted = /^(cluster\.(X|P-)|listener\.groups).*\.ssl\.curves\./;
  const counters = await countersOf(sides.ours, counted);
  assert.equal(Object.keys(counters).length, 2 * groups.length);
  assert.deepEqual(counters, await countersOf(sides.envoy, counted));
});
