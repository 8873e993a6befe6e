// When certificates expire, and how often secrets came or were missed, beside a stock Envoy with the same listeners,
// clusters and files of secrets.
import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, inline, loopback, staticCluster } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { type IssuedIdentity, testAuthority } from "../testing/test-authority.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-tls-stats-"));
const dayMs = 86_400_000;
const authority = await testAuthority();
/** In the middle of a day from now, so that both proxies count as many days. */
const issue = (days: number): Promise<IssuedIdentity> =>
  authority.issue({ dns: ["a.test"], notAfterMs: Date.now() + (days + 0.5) * dayMs });
const first = await issue(20);
const second = await issue(10);

const certificate = ({ chainPem, keyPem }: IssuedIdentity) => ({
  certificate_chain: inline(chainPem),
  private_key: inline(keyPem),
});
const trusted = { trusted_ca: inline(authority.rootPem) };

/** As a control plane does it: whoever reads the file finds one version or the other. */
function writeSecret(file: string, name: string, secret: object): void {
  const type = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
  const draft = path.join(folder, `${file}.new`);
  fs.writeFileSync(draft, JSON.stringify({ resources: [{ "@type": type, name, ...secret }] }));
  fs.renameSync(draft, path.join(folder, file));
}

const fromFile = (name: string, file: string, more: object = {}): object => ({
  name,
  sds_config: { path_config_source: { path: path.join(folder, file) }, ...more },
});
const fetched = {
  tls_certificate_sds_secret_configs: [fromFile("leaf", "leaf.json")],
  validation_context_sds_secret_config: fromFile("spiffe://mesh", "roots.json"),
};
const missed = {
  tls_certificate_sds_secret_configs: [fromFile("missing", "missing.json", { initial_fetch_timeout: "0.1s" })],
};
const own = { tls_certificates: [certificate(first)], validation_context: trusted };
const named = {
  tls_certificate_sds_secret_configs: [{ name: "named-leaf" }],
  validation_context_sds_secret_config: { name: "named-roots" },
};

const transport = (type: string, common_tls_context: object): object => ({
  name: "envoy.transport_sockets.tls",
  typed_config: { "@type": extension(`transport_sockets.tls.v3.${type}`), common_tls_context },
});
const listener = (name: string, common: object): object => ({
  name,
  stat_prefix: name,
  address: loopback(0),
  filter_chains: [
    {
      filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: connectionManager([]) }],
      transport_socket: transport("DownstreamTlsContext", common),
    },
  ],
});
const cluster = (name: string, common: object): object =>
  staticCluster(name, [1], { transport_socket: transport("UpstreamTlsContext", common) });

const relay = (name: string): object => ({
  name: `to-${name}`,
  address: loopback(0),
  filter_chains: [
    {
      filters: [
        {
          name: "envoy.filters.network.tcp_proxy",
          typed_config: {
            "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
            stat_prefix: name,
            cluster: name,
          },
        },
      ],
    },
  ],
});

const contexts = { own, named, fetched, missed };
const bootstrap = JSON.stringify({
  node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
  admin: { address: loopback(0) },
  stats_flush_interval: "0.05s",
  static_resources: {
    secrets: [
      { name: "named-leaf", tls_certificate: certificate(second) },
      { name: "named-roots", validation_context: trusted },
    ],
    listeners: [...Object.entries(contexts).map(([name, context]) => listener(name, context)), relay("missed")],
    clusters: Object.entries(contexts).map(([name, context]) => cluster(name, context)),
  },
});

async function stats({ adminPort }: Side, target: string, shown: RegExp): Promise<readonly string[]> {
  const page = await (await fetch(`http://127.0.0.1:${adminPort}${target}`)).text();
  return page
    .split("\n")
    .filter((line) => shown.test(line) && !line.startsWith("#"))
    .map((line) => line.replace(/\{([^}]*)\}/, (_text, labels: string) => labels.split(",").sort().join()))
    .sort();
}

let sides: readonly Side[] = [];
before(async () => {
  writeSecret("leaf.json", "leaf", { tls_certificate: certificate(first) });
  writeSecret("roots.json", "spiffe://mesh", { validation_context: trusted });
  writeSecret("missing.json", "another", { tls_certificate: certificate(first) });
  sides = [await startOurs("", () => bootstrap), await startEnvoy(folder, 5, () => bootstrap)];
});

after(async () => {
  for (const side of sides) await side.stop();
  fs.rmSync(folder, { recursive: true });
});

/** Waits until both show the same, and `sample` among it. */
async function compare(sample: RegExp, target = "/stats"): Promise<void> {
  const shown = /ssl_socket_factory|ssl.certificate|days_until_first_cert/;
  const both = () => Promise.all(sides.map((side) => stats(side, target, shown)));
  const isSame = async (): Promise<boolean> => {
    const [ours, envoys] = await both();
    return ours!.join() === envoys!.join() && ours!.some((line) => sample.test(line));
  };
  await waitFor(isSame, { what: "the same statistics", timeoutMs: 20_000 }).catch(() => undefined);
  const [ours, envoys] = await both();
  assert.deepEqual(ours, envoys);
  assert.ok(
    ours!.some((line) => sample.test(line)),
    String(sample),
  );
}

test("at the start", async () => {
  await compare(/^server\.days_until_first_cert_expiring: 10$/);
  await compare(/^envoy_cluster_ssl_certificate_expiration.*spiffe/, "/stats/prometheus");
});

test("connections for which a secret is missing", async () => {
  for (const { ports } of sides) {
    for (const name of ["missed", "to-missed"]) {
      const socket = net.connect(ports.get(name)!, "127.0.0.1").on("error", () => undefined);
      socket.resume();
      await once(socket, "close");
    }
  }
  await compare(/^cluster\.missed\.client_ssl_socket_factory\.upstream_context_secrets_not_ready: [1-9]/);
});

test("a secret that changes", async () => {
  writeSecret("leaf.json", "leaf", { tls_certificate: certificate(second) });
  await compare(/^listener\.fetched\.server_ssl_socket_factory\.ssl_context_update_by_sds: 3$/);
});
