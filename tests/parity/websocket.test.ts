// WebSockets through two sidecars, in every mix of the two proxies and of HTTP versions: the client's, between the
// sidecars, and the application's. Nothing is configured for them, as with Istio.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { versions } from "../tools/http2-client.ts";
import { inTime } from "../tools/processes.ts";
import { dial, type Dialled, endOf, exchange, refusal, startWebSocketApplication } from "./websocket-peers.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const outboundPort = 15_007;

/** What stands between the sidecars follows from the mesh's default, a rule, or the port's name. */
const upgradedPort = 3000;
const plainPort = 3001;
const http2Port = 3002;
const ways = [
  { name: "HTTP/1.1 as HTTP/2", port: upgradedPort, application: "HTTP/1.1" },
  { name: "HTTP/1.1", port: plainPort, application: "HTTP/1.1" },
  { name: "HTTP/2", port: http2Port, application: "HTTP/2" },
] as const;

const manifests = kinds.map((kind) =>
  JSON.stringify({
    apiVersion: "networking.tulle.io/v1",
    kind: "DestinationRule",
    metadata: { name: `server-${kind}`, namespace: "shop" },
    spec: {
      host: `server-${kind}`,
      trafficPolicy: {
        portLevelSettings: [
          { port: { number: plainPort }, connectionPool: { http: { h2UpgradePolicy: "DO_NOT_UPGRADE" } } },
        ],
      },
    },
  }),
);

describe("WebSockets between sidecars", () => {
  let mesh: MeshedProxies;

  before(
    async () => {
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) =>
          ["client", "server"].map((role) => ({ name: `${role}-${proxy}`, namespace: "shop", proxy })),
        ),
        ports: ways.map(({ port }) => port),
        protocols: { [http2Port]: "http2" },
        manifests: manifests.join("\n---\n"),
        startApplication: async (pod) => {
          const open = new DisposableStack();
          if (pod.name.startsWith("server"))
            for (const { port, application } of ways)
              open.use(await startWebSocketApplication(application, pod.appAddress, port));
          return { [Symbol.asyncDispose]: async () => open.dispose() };
        },
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  const rows = kinds.flatMap((client) =>
    kinds.flatMap((server) =>
      versions.flatMap((version) =>
        ways.map(({ name, port, application }) => ({ client, server, version, port, name, application })),
      ),
    ),
  );

  for (const { client, server, version, port, name, application } of rows) {
    test(`${client} to ${server}: ${version} of the client, then ${name}`, async () => {
      const call = (path: string): Promise<Dialled> => {
        const { address } = mesh.pod(`client-${client}`);
        const dialled = dial(version, {
          host: address,
          port: outboundPort,
          authority: `server-${server}:${port}`,
          path,
        });
        return inTime(dialled, `a WebSocket at ${path}`);
      };
      if (version === "HTTP/2" && application === "HTTP/1.1" && (port === upgradedPort ? server : client) === "envoy") {
        // It makes no key for an application that wants one.
        assert.equal((await call("/")).status, 400);
        return;
      }
      if (version === "HTTP/1.1" && application === "HTTP/2" && client === "envoy" && server === "envoy") {
        // Nor does it answer to that of a client.
        await assert.rejects(call("/"), { message: "Invalid Sec-WebSocket-Accept header" });
        return;
      }
      const { socket, status, subprotocol } = await call("/");
      assert.equal(status, version === "HTTP/2" ? 200 : 101);
      assert.equal(subprotocol, "chat");
      await exchange(socket!);
      assert.deepEqual(await endOf(socket!, () => socket!.close(4000, "done")), [4000, "done"]);

      const closedByServer = (await call("/")).socket!;
      assert.deepEqual(await endOf(closedByServer, () => closedByServer.send("close")), [4001, "asked to"]);

      const dropped = (await call("/")).socket!;
      assert.deepEqual(await endOf(dropped, () => dropped.send("drop")), [1006, ""]);

      assert.equal((await call("/refused")).status, refusal.status);
    });
  }
});
