// WebSockets from outside, through an ingress gateway of either kind and the application's sidecar of either kind, over
// mutual TLS: `ws:` and `wss:`, HTTP/1.1 and HTTP/2 (RFC 8441), by Gateway and VirtualService alone.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { testCertificate } from "../tools/certificates.ts";
import { MeshedProxies, type ProxyKind } from "../tools/meshed-proxies.ts";
import { type HttpVersion, versions } from "../tools/http2-client.ts";
import { inTime, waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import {
  answerTo,
  dial,
  type Dialled,
  endOf,
  exchange,
  refusal,
  startWebSocketApplication,
  type WebSocketApplication,
} from "./websocket-peers.ts";

const kinds: readonly ProxyKind[] = ["tulle", "envoy"];
const gatewayPorts = { ws: 8080, wss: 8443 } as const;
const schemes = ["ws", "wss"] as const;
const applications = [
  { port: 3000, application: "HTTP/1.1" },
  { port: 3002, application: "HTTP/2" },
] as const;

/** Shorter than the route's, so that both are over when the route's is. */
const connectionIdleTimeout = "1s";
const routeTimeout = "2s";

function manifests(certificateFile: string, keyFile: string): string {
  const networking = "networking.tulle.io/v1";
  const documents = kinds.flatMap((kind) => [
    {
      apiVersion: networking,
      kind: "Gateway",
      metadata: { name: `edge-${kind}`, namespace: "shop" },
      spec: {
        selector: { app: `edge-${kind}` },
        servers: [
          { port: { number: gatewayPorts.ws, name: "http", protocol: "HTTP" }, hosts: ["*.example"] },
          {
            port: { number: gatewayPorts.wss, name: "https", protocol: "HTTPS" },
            hosts: ["*.example"],
            tls: { mode: "SIMPLE", serverCertificate: certificateFile, privateKey: keyFile },
          },
        ],
      },
    },
    {
      apiVersion: networking,
      kind: "VirtualService",
      metadata: { name: `server-${kind}`, namespace: "shop" },
      spec: {
        hosts: [`server-${kind}.example`],
        gateways: kinds.map((each) => `edge-${each}`),
        http: applications.flatMap(({ port }) => {
          const route = [{ destination: { host: `server-${kind}`, port: { number: port } } }];
          return [
            { match: [{ uri: { prefix: `/${port}/timed` } }], timeout: routeTimeout, route },
            { match: [{ uri: { prefix: `/${port}/` } }], route },
          ];
        }),
      },
    },
    {
      apiVersion: networking,
      kind: "DestinationRule",
      metadata: { name: `server-${kind}`, namespace: "shop" },
      spec: {
        host: `server-${kind}`,
        trafficPolicy: { connectionPool: { http: { idleTimeout: connectionIdleTimeout } } },
      },
    },
  ]);
  return documents.map((document) => JSON.stringify(document)).join("\n---\n");
}

describe("WebSockets through an ingress gateway", () => {
  let mesh: MeshedProxies;
  const running = new Map<string, WebSocketApplication>();

  before(
    async () => {
      const names = kinds.map((kind) => `DNS:server-${kind}.example`);
      const { certificate, key } = await testCertificate({ names });
      const folder = temporaryFolder("tulle-websocket-gateway-");
      const files = ["tls.crt", "tls.key"].map((name) => path.join(folder, name)) as [string, string];
      await writeFile(files[0], certificate);
      await writeFile(files[1], key, { mode: 0o600 });
      mesh = await MeshedProxies.start({
        pods: kinds.flatMap((proxy) => [
          { name: `edge-${proxy}`, namespace: "shop", proxy, isGateway: true },
          { name: `server-${proxy}`, namespace: "shop", proxy },
        ]),
        ports: [gatewayPorts.ws, gatewayPorts.wss, ...applications.map(({ port }) => port)],
        protocols: { [gatewayPorts.wss]: "https", 3002: "http2" },
        manifests: manifests(...files),
        startApplication: async (pod) => {
          const open = new DisposableStack();
          for (const { port, application } of applications) {
            const started = open.use(await startWebSocketApplication(application, pod.appAddress, port));
            running.set(`${pod.name}:${port}`, started);
          }
          return { [Symbol.asyncDispose]: async () => open.dispose() };
        },
      });
    },
    { timeout: 120_000 },
  );
  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
  });

  const call = (
    gateway: ProxyKind,
    server: ProxyKind,
    scheme: "ws" | "wss",
    version: HttpVersion,
    url: string,
  ): Promise<Dialled> => {
    const { address: host } = mesh.pod(`edge-${gateway}`);
    const authority = `server-${server}.example`;
    const isTls = scheme === "wss";
    const dialled = dial(version, { host, port: gatewayPorts[scheme], authority, path: url, isTls });
    return inTime(dialled, `a WebSocket at ${url}`);
  };

  const rows = kinds.flatMap((gateway) =>
    kinds.flatMap((server) =>
      schemes.flatMap((scheme) =>
        versions.flatMap((version) => applications.map((each) => ({ gateway, server, scheme, version, ...each }))),
      ),
    ),
  );

  for (const { gateway, server, scheme, version, port, application } of rows) {
    test(`${scheme} of ${version} by ${gateway} to ${server}, whose application speaks ${application}`, async () => {
      const open = (url: string): Promise<Dialled> => call(gateway, server, scheme, version, `/${port}/${url}`);
      if (version === "HTTP/2" && application === "HTTP/1.1" && server === "envoy") {
        // It makes no key for an application that wants one.
        assert.equal((await open("")).status, 400);
        return;
      }
      if (version === "HTTP/1.1" && application === "HTTP/2" && gateway === "envoy" && server === "envoy") {
        // Nor does it answer to that of a client.
        await assert.rejects(open(""), { message: "Invalid Sec-WebSocket-Accept header" });
        return;
      }
      const { socket, status, subprotocol } = await open("");
      assert.deepEqual([status, subprotocol], [version === "HTTP/2" ? 200 : 101, "chat"]);
      await exchange(socket!);
      assert.deepEqual(await endOf(socket!, () => socket!.close(4000, "done")), [4000, "done"]);
      const heard = async (word: string): Promise<readonly unknown[]> => {
        const opened = await open("");
        return endOf(opened.socket!, () => opened.socket!.send(word));
      };
      const cutPath = `cut/${gateway}/${scheme}/${version}`;
      const cut = async (): Promise<number> => {
        const opened = await open(cutPath);
        opened.socket!.on("error", () => undefined);
        opened.cut();
        const { ends } = running.get(`server-${server}:${port}`)!;
        return waitFor(() => ends.get(`/${port}/${cutPath}`), { what: "the end at the application" });
      };
      const refused = await open("refused");
      assert.deepEqual([refused.status, refused.body], [refusal.status, refusal.body]);
      assert.equal(refused.headers["x-reason"], refusal.reason);
      assert.equal((await call(gateway, server, scheme, version, "/nowhere")).status, 404);
      assert.deepEqual(await Promise.all([heard("close"), heard("drop"), cut()]), [
        [4001, "asked to"],
        [1006, ""],
        1006,
      ]);
    });
  }

  for (const gateway of kinds) {
    test(`an upgrade that nobody allows, by ${gateway}`, async () => {
      const { address: host } = mesh.pod(`edge-${gateway}`);
      const authority = "server-tulle.example";
      for (const scheme of schemes) {
        const place = { host, port: gatewayPorts[scheme], authority, path: "/3000/", isTls: scheme === "wss" };
        assert.equal((await dial("HTTP/2", { ...place, protocol: "other" })).status, 403);
      }
    });

    test(`what ends a request and an idle connection ends no WebSocket, by ${gateway}`, async () => {
      const live = versions.map(async (version) => {
        const { socket } = await call(gateway, "tulle", "ws", version, "/3000/timed");
        const host = mesh.pod(`edge-${gateway}`).address;
        const { status } = await hangingStatus(host);
        assert.equal(await answerTo(socket!, "still here"), "still here");
        assert.deepEqual(await endOf(socket!, () => socket!.close(1000)), [1000, ""]);
        return status;
      });
      assert.deepEqual(await Promise.all(live), [504, 504]);
    });
  }
});

/** Of an ordinary request at the same route, which nobody answers: by then the route's time is over. */
function hangingStatus(host: string): Promise<{ readonly status: number | undefined }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: number | undefined }>();
  const headers = { host: "server-tulle.example" };
  const request = http.get({ host, port: gatewayPorts.ws, path: "/3000/timed/hang", headers, agent: false });
  request.on("response", (response) => {
    response.resume();
    resolve({ status: response.statusCode });
  });
  request.on("error", reject);
  return inTime(promise, "the route's time-out");
}
