// The same clusters and the same hosts for this proxy and for a stock Envoy: who is refused, and in which words.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import type net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { expectedOfBoth, type ParityExpectation } from "../../../../tests/tools/parity-difference.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { type IssuedIdentity, selfSigned, testAuthority } from "../testing/test-authority.ts";
import { extension, fileAccessLog, inline, loopback, router } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";

const authority = await testAuthority();
const foreign = await testAuthority("foreign.local");
const hourMs = 3_600_000;
const catalogUri = "spiffe://cluster.local/ns/shop/sa/catalog";
const good = await authority.issue({ dns: ["catalog.shop.svc", "*.wild.test"] });
const client = await authority.issue({ uri: "spiffe://cluster.local/ns/shop/sa/web" });
const other = await authority.issue();
const expired = await authority.issue({ notBeforeMs: Date.now() - 2 * hourMs, notAfterMs: Date.now() - hourMs });
const future = await authority.issue({ notBeforeMs: Date.now() + hourMs, notAfterMs: Date.now() + 2 * hourMs });
const stranger = await foreign.issue({ uri: catalogUri });
const itself = await selfSigned(catalogUri);
const expiredStranger = await foreign.issue({
  uri: catalogUri,
  notBeforeMs: Date.now() - 2 * hourMs,
  notAfterMs: Date.now() - hourMs,
});

const trusted = { trusted_ca: inline(authority.rootPem) };
const uri = (matcher: object): object => ({
  match_typed_subject_alt_names: [{ san_type: "URI", matcher }],
});
const dns = (matcher: object): object => ({ match_typed_subject_alt_names: [{ san_type: "DNS", matcher }] });
const shows = (identity: IssuedIdentity): object => ({
  tls_certificates: [{ certificate_chain: inline(identity.chainPem), private_key: inline(identity.keyPem) }],
});
const emptyList = inline(authority.revocationList([]));
const badHash = "00".repeat(32);
const badSpki = Buffer.alloc(32).toString("base64");

interface Row {
  readonly name: string;
  /** The host's certificate and what it asks for; undefined = plain HTTP. */
  readonly host: https.ServerOptions | undefined;
  readonly validation?: object;
  readonly common?: object;
  readonly context?: object;
  readonly cluster?: object;
  readonly expected: {
    readonly status: number;
    readonly flags?: string;
    readonly reason?: ParityExpectation<RegExp>;
    readonly host?: { readonly sni?: string | false; readonly alpn?: string | false; readonly client?: string };
    readonly stats?: Readonly<Record<string, number>>;
  };
}

const serverOf = (identity: IssuedIdentity, options: https.ServerOptions = {}): https.ServerOptions => ({
  cert: identity.chainPem,
  key: identity.keyPem,
  ...options,
});
const mutual: https.ServerOptions = { ca: authority.rootPem, requestCert: true, rejectUnauthorized: true };
const refusedAs = (words: string): RegExp =>
  new RegExp(
    `^TLS_error:\\|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_${words}:TLS_error_end$`,
  );
const listError = (depth: number, words: string): RegExp =>
  chainError(depth, `certificate_revocation_check_against_provided_CRLs_failed:_${words}`);
const chainError = (depth: number, words: string): RegExp =>
  refusedAs(`X509_verify_cert:_certificate_verification_error_at_depth_${depth}:_${words}`);
const served = { status: 200, flags: "-", reason: /^-$/ };
const refused = { status: 503, flags: "UF" };
const sanWords = "SAN_matcher,_certificate_SANs_are_\\[.*\\]";

const table: readonly Row[] = [
  { name: "no validation", host: serverOf(good), expected: { ...served, host: { sni: false, alpn: "http/1.1" } } },
  { name: "a trusted chain", host: serverOf(good), validation: trusted, expected: served },
  {
    name: "a trusted intermediate ends the chain",
    host: serverOf(good),
    validation: { trusted_ca: inline(authority.intermediatePem) },
    expected: served,
  },
  {
    name: "another trust domain",
    host: serverOf(stranger),
    validation: trusted,
    expected: { ...refused, reason: chainError(1, "unable_to_get_local_issuer_certificate") },
  },
  {
    name: "an expired leaf",
    host: serverOf(expired),
    validation: trusted,
    expected: {
      ...refused,
      reason: chainError(0, "certificate_has_expired"),
      stats: { fail_verify_error: 1, connection_error: 0 },
    },
  },
  {
    name: "an expired leaf is allowed",
    host: serverOf(expired),
    validation: { ...trusted, allow_expired_certificate: true },
    expected: served,
  },
  {
    name: "a leaf of the future is allowed",
    host: serverOf(future),
    validation: { ...trusted, allow_expired_certificate: true },
    expected: served,
  },
  {
    name: "an expired leaf of another trust domain is never allowed",
    host: serverOf(expiredStranger),
    validation: { ...trusted, allow_expired_certificate: true },
    expected: { ...refused, reason: chainError(1, "unable_to_get_local_issuer_certificate") },
  },
  {
    name: "a leaf of the future",
    host: serverOf(future),
    validation: trusted,
    expected: { ...refused, reason: chainError(0, "certificate_is_not_yet_valid") },
  },
  {
    name: "a self-signed leaf",
    host: serverOf(itself),
    validation: trusted,
    expected: { ...refused, reason: chainError(0, "self_signed_certificate") },
  },
  {
    name: "a self-signed leaf that is itself trusted",
    host: serverOf(itself),
    validation: { trusted_ca: inline(itself.chainPem) },
    expected: served,
  },
  {
    name: "an untrusted one is accepted on demand",
    host: serverOf(stranger),
    validation: { ...trusted, trust_chain_verification: "ACCEPT_UNTRUSTED" },
    expected: served,
  },
  {
    name: "the URI exactly",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ exact: catalogUri }) },
    expected: served,
  },
  {
    name: "another URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ exact: "spiffe://cluster.local/ns/shop/sa/other" }) },
    expected: {
      ...refused,
      reason: refusedAs(sanWords),
      stats: { fail_verify_san: 1, connection_error: 0, handshake: 0 },
    },
  },
  {
    name: "one of two URIs",
    host: serverOf(good),
    validation: {
      ...trusted,
      match_typed_subject_alt_names: [
        { san_type: "URI", matcher: { exact: "spiffe://x/y" } },
        { san_type: "URI", matcher: { exact: catalogUri } },
      ],
    },
    expected: served,
  },
  {
    name: "a prefix of the URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ prefix: "spiffe://cluster.local/ns/shop/" }) },
    expected: served,
  },
  {
    name: "a wrong prefix of the URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ prefix: "spiffe://cluster.local/ns/bank/" }) },
    expected: { ...refused, reason: refusedAs(sanWords) },
  },
  {
    name: "a suffix of the URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ suffix: "/sa/catalog" }) },
    expected: served,
  },
  {
    name: "a part of the URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ contains: "/ns/shop/" }) },
    expected: served,
  },
  {
    name: "a regex of the URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ safe_regex: { regex: "spiffe://[^/]+/ns/shop/sa/.*" } }) },
    expected: served,
  },
  {
    name: "a regex fits the whole URI only",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ safe_regex: { regex: "spiffe://[^/]+/ns/shop" } }) },
    expected: { ...refused, reason: refusedAs(sanWords) },
  },
  {
    name: "a DNS name",
    host: serverOf(good),
    validation: { ...trusted, ...dns({ exact: "catalog.shop.svc" }) },
    expected: served,
  },
  {
    name: "a DNS name is no URI",
    host: serverOf(good),
    validation: { ...trusted, ...uri({ exact: "catalog.shop.svc" }) },
    expected: { ...refused, reason: refusedAs(sanWords) },
  },
  {
    name: "a DNS name under a wildcard",
    host: serverOf(good),
    validation: { ...trusted, ...dns({ exact: "a.wild.test" }) },
    expected: served,
  },
  {
    name: "a DNS name two labels under a wildcard",
    host: serverOf(good),
    validation: { ...trusted, ...dns({ exact: "a.b.wild.test" }) },
    expected: { ...refused, reason: refusedAs(sanWords) },
  },
  {
    name: "the leaf's hash",
    host: serverOf(good),
    validation: { ...trusted, verify_certificate_hash: [good.hash.toUpperCase()] },
    expected: served,
  },
  {
    name: "another hash",
    host: serverOf(good),
    validation: { ...trusted, verify_certificate_hash: [badHash] },
    expected: {
      ...refused,
      reason: refusedAs("cert_hash_and_spki"),
      stats: { fail_verify_cert_hash: 1, connection_error: 0 },
    },
  },
  {
    name: "the key's hash",
    host: serverOf(good),
    validation: { ...trusted, verify_certificate_spki: [good.spki] },
    expected: served,
  },
  {
    name: "another key's hash",
    host: serverOf(good),
    validation: { ...trusted, verify_certificate_spki: [badSpki] },
    expected: { ...refused, reason: refusedAs("cert_hash_and_spki") },
  },
  {
    name: "one of both hashes is enough",
    host: serverOf(good),
    validation: { ...trusted, verify_certificate_spki: [badSpki], verify_certificate_hash: [good.hash] },
    expected: served,
  },
  {
    name: "a hash without a chain",
    host: serverOf(itself),
    validation: { verify_certificate_hash: [itself.hash] },
    expected: served,
  },
  {
    name: "a leaf on the list",
    host: serverOf(good),
    validation: { ...trusted, crl: inline(authority.revocationList([good.leaf])), only_verify_leaf_cert_crl: true },
    expected: { ...refused, reason: listError(0, "certificate_revoked"), stats: { fail_verify_error: 1 } },
  },
  {
    name: "a leaf that is not on the list",
    host: serverOf(good),
    validation: { ...trusted, crl: inline(authority.revocationList([other.leaf])), only_verify_leaf_cert_crl: true },
    expected: served,
  },
  {
    name: "a list for the leaf, none for its authority",
    host: serverOf(good),
    validation: { ...trusted, crl: emptyList },
    expected: { ...refused, reason: listError(1, "unable_to_get_certificate_CRL") },
  },
  {
    name: "a list of another authority",
    host: serverOf(good),
    validation: { ...trusted, crl: inline(foreign.revocationList([])), only_verify_leaf_cert_crl: true },
    expected: { ...refused, reason: listError(0, "unable_to_get_certificate_CRL") },
  },
  {
    name: "lists are asked for a chain that ends at a trusted intermediate",
    host: serverOf(good),
    validation: { trusted_ca: inline(authority.intermediatePem), crl: inline(authority.revocationList([good.leaf])) },
    expected: { ...refused, reason: listError(0, "certificate_revoked") },
  },
  {
    name: "mutual TLS",
    host: serverOf(good, mutual),
    validation: trusted,
    common: shows(client),
    expected: { ...served, host: { client: "spiffe://cluster.local/ns/shop/sa/web" } },
  },
  {
    name: "mutual TLS without a certificate, TLS 1.2",
    host: serverOf(good, { ...mutual, maxVersion: "TLSv1.2" }),
    validation: trusted,
    expected: {
      ...refused,
      reason: /^TLS_error:\|268436496:SSL_routines:OPENSSL_internal:SSLV3_ALERT_HANDSHAKE_FAILURE:TLS_error_end$/,
      stats: { connection_error: 1 },
    },
  },
  {
    name: "the configured server name and protocols",
    host: serverOf(good, { ALPNProtocols: ["istio", "h2"] }),
    validation: trusted,
    common: { alpn_protocols: ["istio-peer-exchange", "istio"] },
    context: { sni: "outbound_.80_._.catalog.shop.svc" },
    expected: { ...served, host: { sni: "outbound_.80_._.catalog.shop.svc", alpn: "istio" } },
  },
  {
    name: "the host's own name",
    host: serverOf(good),
    context: { sni: "other.test", auto_host_sni: true },
    expected: { ...served, host: { sni: "host.test" } },
  },
  {
    name: "the certificate must be for the server name: it is",
    host: serverOf(good),
    validation: trusted,
    context: { sni: "catalog.shop.svc", auto_sni_san_validation: true },
    expected: served,
  },
  {
    name: "the certificate must be for the server name: it is not",
    host: serverOf(good),
    validation: trusted,
    context: { sni: "orders.shop.svc", auto_sni_san_validation: true },
    expected: { ...refused, reason: refusedAs(sanWords) },
  },
  {
    name: "TLS 1.2 where the host has no other",
    host: serverOf(good, { maxVersion: "TLSv1.2" }),
    validation: trusted,
    expected: { ...served, stats: { "versions.TLSv1.2": 1, handshake: 1 } },
  },
  {
    name: "TLS 1.3 where both have it",
    host: serverOf(good, { ciphers: "TLS_AES_128_GCM_SHA256" }),
    common: { tls_params: { tls_maximum_protocol_version: "TLSv1_3" } },
    expected: { ...served, stats: { "versions.TLSv1.3": 1, "ciphers.TLS_AES_128_GCM_SHA256": 1 } },
  },
  {
    name: "a host that has only TLS 1.2 for a client that wants 1.3",
    host: serverOf(good, { maxVersion: "TLSv1.2" }),
    common: { tls_params: { tls_minimum_protocol_version: "TLSv1_3", tls_maximum_protocol_version: "TLSv1_3" } },
    expected: {
      ...refused,
      reason: /^TLS_error:\|268436526:SSL_routines:OPENSSL_internal:TLSV1_ALERT_PROTOCOL_VERSION:TLS_error_end$/,
    },
  },
  {
    name: "a host that has only TLS 1.3 for a client that wants 1.2",
    host: serverOf(good, { minVersion: "TLSv1.3" }),
    common: { tls_params: { tls_maximum_protocol_version: "TLSv1_2" } },
    expected: {
      ...refused,
      reason: /^TLS_error:\|268436526:SSL_routines:OPENSSL_internal:TLSV1_ALERT_PROTOCOL_VERSION:TLS_error_end$/,
    },
  },
  {
    name: "the configured cipher",
    host: serverOf(good, { maxVersion: "TLSv1.2" }),
    common: { tls_params: { cipher_suites: ["ECDHE-ECDSA-AES256-GCM-SHA384"] } },
    expected: { ...served, stats: { "ciphers.ECDHE-ECDSA-AES256-GCM-SHA384": 1 } },
  },
  {
    name: "no cipher in common",
    host: serverOf(good, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }),
    common: { tls_params: { cipher_suites: ["ECDHE-ECDSA-AES256-GCM-SHA384"] } },
    expected: {
      ...refused,
      reason: {
        ours: /^TLS_error:\|268436496:SSL_routines:OPENSSL_internal:SSLV3_ALERT_HANDSHAKE_FAILURE:TLS_error_end$/,
        envoys: /SSLV3_ALERT_HANDSHAKE_FAILURE\|.*HANDSHAKE_FAILURE_ON_CLIENT_HELLO:TLS_error_end$/,
        why: "Envoy's library says a second error, of its own",
      },
    },
  },
  {
    name: "a host that speaks plain HTTP",
    host: undefined,
    validation: trusted,
    expected: {
      ...refused,
      reason: /^TLS_error:\|268435703:SSL_routines:OPENSSL_internal:WRONG_VERSION_NUMBER:TLS_error_end$/,
      stats: { connection_error: 1 },
    },
  },
];

interface Outcome {
  readonly status: number;
  readonly flags: string;
  readonly reason: string;
  readonly told: string;
  /** Version and cipher: Envoy's clients go no further than TLS 1.2 by themselves. */
  readonly settled: string;
  readonly body: string;
  readonly stats: ReadonlyMap<string, number>;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-upstream-tls-"));
const servers: http.Server[] = [];
const outcomes = new Map<string, readonly [ours: Outcome, envoys: Outcome]>();

function answer(request: http.IncomingMessage, response: http.ServerResponse): void {
  const socket = request.socket as TLSSocket & { servername?: string | false };
  const shown = socket.getPeerX509Certificate?.()?.subjectAltName?.replace("URI:", "");
  response.end(JSON.stringify({ sni: socket.servername, alpn: socket.alpnProtocol, client: shown }));
}

/** What logs tell of the connection: the same on both sides, whoever was met. */
const toldOfPeers =
  `PEER_URI_SAN PEER_DNS_SAN PEER_IP_SAN PEER_SUBJECT PEER_ISSUER PEER_CERT PEER_CERT_V_START PEER_CERT_V_START(%Y)
  PEER_CERT_V_END LOCAL_URI_SAN LOCAL_DNS_SAN LOCAL_IP_SAN`
    .split(/\s+/)
    .map((operator) => `${operator.replaceAll("%", "")}=%UPSTREAM_${operator}%`)
    .join(" ");

async function listen({ host }: Row): Promise<number> {
  const options = host && { ...host, ALPNProtocols: host.ALPNProtocols ?? ["http/1.1"] };
  const server = options === undefined ? http.createServer(answer) : https.createServer(options, answer);
  servers.push(server);
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return (server.address() as net.AddressInfo).port;
}

function bootstrap(ports: readonly number[], log: string): string {
  const clusters = table.map((row, index) => ({
    name: `c${index}`,
    type: "STATIC",
    load_assignment: {
      cluster_name: `c${index}`,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(ports[index]!), hostname: "host.test" } }] }],
    },
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": extension("transport_sockets.tls.v3.UpstreamTlsContext"),
        common_tls_context: {
          ...(row.validation !== undefined && { validation_context: row.validation }),
          ...row.common,
        },
        ...row.context,
      },
    },
    ...row.cluster,
  }));
  const format = `%REQ(x-row)%\t%RESPONSE_FLAGS%\t%UPSTREAM_TRANSPORT_FAILURE_REASON%\t${toldOfPeers}\t%UPSTREAM_TLS_VERSION%\t%UPSTREAM_TLS_CIPHER%\n`;
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      clusters,
      listeners: [
        {
          name: "l",
          address: loopback(0),
          filter_chains: [
            {
              filters: [
                {
                  name: "envoy.filters.network.http_connection_manager",
                  typed_config: {
                    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
                    stat_prefix: "l",
                    route_config: {
                      name: "r",
                      virtual_hosts: [
                        {
                          name: "all",
                          domains: ["*"],
                          routes: table.map((_row, index) => ({
                            match: { path: `/${index}` },
                            route: { cluster: `c${index}` },
                          })),
                        },
                      ],
                    },
                    http_filters: [router],
                    access_log: [fileAccessLog(log, format)],
                  },
                },
              ],
            },
          ],
        },
      ],
    },
  });
}

function get(port: number, target: string, row = ""): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: target, agent: false, headers: { "x-row": row } };
    const request = http.get(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode!, body }));
    });
    request.on("error", reject);
  });
}

async function collect(port: number, adminPort: number, log: string): Promise<Outcome[]> {
  const answers = [];
  for (const index of table.keys()) answers.push(await get(port, `/${index}`, String(index)));
  const lines = await waitFor(
    () => {
      const found = fs.existsSync(log)
        ? fs
            .readFileSync(log, "utf8")
            .split("\n")
            .filter((line) => line !== "")
        : [];
      return found.length >= table.length && found;
    },
    { what: `the access log ${path.basename(log)}` },
  );
  const byRow = new Map(lines.map((line) => [line.split("\t")[0]!, line.split("\t")]));
  const stats = (await get(adminPort, "/stats?filter=ssl")).body.split("\n").map((line) => line.split(": "));
  return answers.map(({ status, body }, index) => {
    const [, flags = "", reason = "", told = "", version = "", cipher = ""] = byRow.get(String(index)) ?? [];
    const prefix = `cluster.c${index}.ssl.`;
    const own = stats.filter(([name]) => name!.startsWith(prefix));
    return {
      status,
      flags,
      reason,
      told,
      settled: `${version} ${cipher}`,
      body,
      stats: new Map(own.map(([name, value]) => [name!.slice(prefix.length), Number(value)])),
    };
  });
}

before(async () => {
  const ports: number[] = [];
  for (const row of table) ports.push(await listen(row));
  const bootstrapFor = (log: string): string => bootstrap(ports, log);
  const outcomesOf = async (side: Side): Promise<readonly Outcome[]> => {
    const collected = await collect(side.ports.get("l")!, side.adminPort, side.log);
    await side.stop();
    return collected;
  };
  const ours = await outcomesOf(await startOurs(path.join(folder, "ours.log"), bootstrapFor));
  const envoys = await outcomesOf(await startEnvoy(folder, 1, bootstrapFor));
  for (const [index, { name }] of table.entries()) outcomes.set(name, [ours[index]!, envoys[index]!]);
});

after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  fs.rmSync(folder, { recursive: true });
});

for (const { name, expected } of table) {
  test(name, () => {
    const [ours, envoys] = outcomes.get(name)!;
    if (expected.status !== 200) assert.equal(ours.body, envoys.body);
    assert.deepEqual(ours.told.split(" "), envoys.told.split(" "));
    for (const [who, outcome] of [
      ["ours", ours],
      ["Envoy's", envoys],
    ] as const) {
      assert.match(
        outcome.settled,
        outcome.told.includes("PEER_CERT=-----BEGIN") ? /^TLSv1\.[23] [A-Z0-9_-]+$/ : /^- -$/,
        who,
      );
      assert.equal(outcome.status, expected.status, `${who}: ${outcome.reason} ${outcome.body}`);
      if (expected.flags !== undefined) assert.equal(outcome.flags, expected.flags, who);
      if (expected.reason !== undefined) {
        const reason = expectedOfBoth(expected.reason);
        assert.match(outcome.reason, who === "ours" ? reason.ours : reason.envoys, who);
      }
      if (expected.host !== undefined) {
        const said = JSON.parse(outcome.body) as Record<string, unknown>;
        assert.deepEqual(
          Object.fromEntries(Object.keys(expected.host).map((key) => [key, said[key]])),
          expected.host,
          who,
        );
      }
      for (const [stat, value] of Object.entries(expected.stats ?? {})) {
        assert.equal(outcome.stats.get(stat), value, `${who}: ${stat} of ${[...outcome.stats].join(" ")}`);
      }
    }
  });
}
