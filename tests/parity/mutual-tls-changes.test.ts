// Mutual TLS that is switched on while requests of HTTP/1.1 and of HTTP/2 run: none may fail, and what is left open is
// closed in the end.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { callMeshed, type MeshedOutcome } from "./meshed-call.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const port = 3000;
const outboundPort = 15_007;

const mode = (name: string): string =>
  `{ apiVersion: security.tulle.io/v1, kind: PeerAuthentication, metadata: { name: default, namespace: shop }, spec: { mtls: { mode: ${name} } } }`;
const rule = (host: string, tls: string): string =>
  `{ apiVersion: networking.tulle.io/v1, kind: DestinationRule, metadata: { name: ${host}, namespace: shop }, spec: { host: ${host}, trafficPolicy: { tls: ${tls} } } }`;
const plainText = kinds.map((kind) => rule(`server-${kind}`, "{ mode: DISABLE }"));

interface Pair {
  readonly client: ProxyKind;
  readonly server: ProxyKind;
}

describe("mutual TLS that changes", () => {
  let mesh: MeshedProxies;
  const pairs = kinds.flatMap((client) => kinds.map((server): Pair => ({ client, server })));

  before(
    async () => {
      const roles = ["client", "server"];
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) => roles.map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy }))),
        ports: [port],
        manifests: [mode("PERMISSIVE"), ...plainText].join("\n---\n"),
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  const plain = (server: ProxyKind): Promise<MeshedOutcome> =>
    callMeshed({ host: mesh.pod(`server-${server}`).address, port });
  const throughSidecar = ({ client, server }: Pair, version: HttpVersion = "HTTP/1.1"): Promise<MeshedOutcome> =>
    callMeshed({
      host: mesh.pod(`client-${client}`).address,
      port: outboundPort,
      version,
      headers: { host: `server-${server}:${port}` },
    });
  const throughAll = (): Promise<readonly MeshedOutcome[]> => Promise.all(pairs.map((pair) => throughSidecar(pair)));
  const statusOf = (outcome: MeshedOutcome): number | string =>
    outcome.type === "answered" ? outcome.status : outcome.reason;
  const waitForAll = (what: string, isThere: (outcome: MeshedOutcome) => boolean): Promise<unknown> =>
    waitFor(async () => (await throughAll()).every(isThere), { what });
  const isEncrypted = (outcome: MeshedOutcome): boolean =>
    outcome.type === "answered" && outcome.echo?.headers["x-forwarded-client-cert"] !== undefined;

  test("from plain text over PERMISSIVE to STRICT and back, without a failed request", async () => {
    const failures: string[] = [];
    let requests = 0;
    const over = new AbortController();
    const clients = pairs.map(async (pair) => {
      for (let turn = 0; !over.signal.aborted; turn += 1) {
        const version = versions[turn % versions.length]!;
        const outcome = await throughSidecar(pair, version);
        requests += 1;
        if (statusOf(outcome) !== 200)
          failures.push(`${pair.client} to ${pair.server}, ${version}: ${statusOf(outcome)}`);
      }
    });
    assert.ok(!(await throughAll()).some(isEncrypted));
    await mesh.setManifests(mode("PERMISSIVE"));
    await waitForAll("encryption", isEncrypted);
    await mesh.setManifests(mode("STRICT"));
    for (const server of kinds) {
      const isRefused = async (): Promise<boolean> => (await plain(server)).type === "refused";
      await waitFor(isRefused, { what: `${server} to refuse plain text` });
    }
    await waitForAll("encryption", isEncrypted);
    await mesh.setManifests(mode("PERMISSIVE"));
    for (const server of kinds) {
      const isServed = async (): Promise<boolean> => statusOf(await plain(server)) === 200;
      await waitFor(isServed, { what: `${server} to take plain text` });
    }
    over.abort();
    await Promise.all(clients);
    assert.deepEqual(failures, []);
    assert.ok(requests > pairs.length);
  });

  test("a rule that expects somebody else takes effect, and goes", async () => {
    const tls = '{ mode: ISTIO_MUTUAL, subjectAltNames: ["spiffe://cluster.local/ns/shop/sa/somebody-else"] }';
    const rules = kinds.map((kind) => rule(`server-${kind}`, tls));
    await mesh.setManifests([mode("STRICT"), ...rules].join("\n---\n"));
    await waitForAll("503", (outcome) => statusOf(outcome) === 503);
    await mesh.setManifests(mode("STRICT"));
    await waitForAll("200", (outcome) => statusOf(outcome) === 200);
  });
});
