// What sidecars speak to each other: HTTP/1.1 of applications as streams of HTTP/2, unless a DestinationRule says
// otherwise. In every mix of the two proxies.
import assert from "node:assert/strict";
import http2 from "node:http2";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { callMeshed } from "./meshed-call.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const upgradedPort = 3000;
const followingPort = 3001;
const plainPort = 3002;
const countedPort = 3003;
const defaultPort = 3004;
const outboundPort = 15_007;

const manifests = kinds.map((kind) =>
  JSON.stringify({
    apiVersion: "networking.tulle.io/v1",
    kind: "DestinationRule",
    metadata: { name: `server-${kind}`, namespace: "shop" },
    spec: {
      host: `server-${kind}`,
      trafficPolicy: {
        portLevelSettings: [
          {
            port: { number: upgradedPort },
            connectionPool: {
              http: {
                h2UpgradePolicy: "UPGRADE",
                maxConcurrentStreams: 50,
                http2KeepAlive: { interval: "1s", timeout: "5s" },
              },
            },
          },
          { port: { number: plainPort }, connectionPool: { http: { h2UpgradePolicy: "DO_NOT_UPGRADE" } } },
          { port: { number: countedPort }, connectionPool: { tcp: { maxConnections: 10 } } },
          { port: { number: followingPort }, connectionPool: { http: { useClientProtocol: true } } },
        ],
      },
    },
  }),
);

describe("HTTP/2 between sidecars", () => {
  let mesh: MeshedProxies;

  before(
    async () => {
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports: [upgradedPort, followingPort, plainPort, countedPort, defaultPort],
        manifests: manifests.join("\n---\n"),
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  /** What the server's sidecar says in its log that it was spoken to in. */
  async function protocolAt(server: ProxyKind, path: string): Promise<string> {
    return waitFor(
      async () => {
        const line = mesh
          .output(`server-${server}`)
          .split("\n")
          .find((each) => each.includes(` ${path} `));
        return line === undefined ? false : /(HTTP\/[\d.]+)"/.exec(line)![1]!;
      },
      { what: `a line of ${path}` },
    );
  }

  const http1 = async (client: ProxyKind, server: ProxyKind, port: number, path: string): Promise<number> => {
    const { address } = mesh.pod(`client-${client}`);
    const headers = { host: `server-${server}:${port}` };
    const outcome = await callMeshed({ host: address, port: outboundPort, path, headers });
    assert.equal(outcome.type, "answered");
    return outcome.type === "answered" ? outcome.status : 0;
  };

  const overHttp2 = async (client: ProxyKind, server: ProxyKind, port: number, path: string): Promise<number> => {
    const session = http2.connect(`http://${mesh.pod(`client-${client}`).address}:${outboundPort}`);
    try {
      const stream = session.request({ ":path": path, ":authority": `server-${server}:${port}` });
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      stream.once("response", (headers) => resolve(headers[":status"] ?? 0)).once("error", reject);
      stream.resume();
      return await promise;
    } finally {
      session.destroy();
    }
  };

  for (const client of kinds) {
    for (const server of kinds) {
      const pair = `${client} to ${server}`;
      const rows = [
        { name: "HTTP/1.1 becomes HTTP/2", send: http1, port: upgradedPort, expected: "HTTP/2" },
        { name: "HTTP/2 stays", send: overHttp2, port: upgradedPort, expected: "HTTP/2" },
        { name: "HTTP/1.1 becomes HTTP/2 without a rule", send: http1, port: defaultPort, expected: "HTTP/2" },
        { name: "a rule that counts connections keeps HTTP/1.1", send: http1, port: countedPort, expected: "HTTP/1.1" },
        { name: "HTTP/1.1 is followed", send: http1, port: followingPort, expected: "HTTP/1.1" },
        { name: "HTTP/2 is followed", send: overHttp2, port: followingPort, expected: "HTTP/2" },
        { name: "HTTP/2 becomes HTTP/1.1", send: overHttp2, port: plainPort, expected: "HTTP/1.1" },
      ];
      for (const [index, { name, send, port, expected }] of rows.entries()) {
        test(`${pair}: ${name}`, async () => {
          const path = `/${client}-${index}`;
          assert.equal(await send(client, server, port, path), 200);
          assert.equal(await protocolAt(server, path), expected);
        });
      }
    }
  }

  test("Tulle's clusters take the limits of their rule", async () => {
    const dump = await mesh.admin("client-tulle", "/config_dump");
    assert.match(dump, /"max_concurrent_streams": 50/);
    assert.match(dump, /"connection_keepalive"/);
  });
});
