// Overload on this proxy and on a stock Envoy: memory that is over its limit, and more connections than are allowed.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { countersOf, type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { connectionManager, extension, fileAccessLog, loopback } from "../testing/envoy-json.ts";

const memory = {
  name: "memory",
  typed_config: { "@type": extension("resource_monitors.fixed_heap.v3.FixedHeapConfig"), max_heap_size_bytes: "1024" },
};
const connections = {
  name: "envoy.resource_monitors.global_downstream_max_connections",
  typed_config: {
    "@type": extension("resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"),
    max_active_downstream_connections: "2",
  },
};
const action = (name: string): object => ({
  name: `envoy.overload_actions.${name}`,
  triggers: [{ name: "memory", threshold: { value: 0.9 } }],
});

const overloads: Readonly<Record<string, object>> = {
  requests: { resource_monitors: [memory], actions: [action("stop_accepting_requests")] },
  keepalive: { resource_monitors: [memory], actions: [action("disable_http_keepalive")] },
  connections: { resource_monitors: [connections] },
  rejected: { resource_monitors: [memory], actions: [action("reject_incoming_connections")] },
};

function bootstrap(logPath: string, overload: object): string {
  const routes = [{ match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: "ok" } } }];
  const manager = connectionManager(routes, {
    access_log: [fileAccessLog(logPath, "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n")],
  });
  const at = loopback(0);
  return JSON.stringify({
    admin: { address: at },
    overload_manager: { refresh_interval: "0.05s", ...overload },
    static_resources: {
      listeners: [
        {
          name: "main",
          stat_prefix: "main",
          ignore_global_conn_limit: false,
          address: at,
          filter_chains: [
            { filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] },
          ],
        },
      ],
    },
  });
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly connection: string | undefined;
}

/** Undefined when the connection was closed without an answer. */
function request(port: number, agent: http.Agent): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const sent = http.get({ host: "127.0.0.1", port, agent, headers: { host: "a" } }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      const { connection } = response.headers;
      response.once("end", () => resolve({ status: response.statusCode!, body, connection }));
    });
    sent.once("error", () => resolve(undefined));
  });
}

describe("overload, on both proxies", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-overload-"));
  const running: { name: string; kind: string; side: Side }[] = [];
  const agent = new http.Agent({ keepAlive: true });
  before(async () => {
    for (const [kind, overload] of Object.entries(overloads)) {
      const own = path.join(folder, kind);
      fs.mkdirSync(own);
      const make = (log: string): string => bootstrap(log, overload);
      running.push({ name: "ours", kind, side: await startOurs(path.join(own, "ours.log"), make) });
      running.push({ name: "envoy", kind, side: await startEnvoy(own, 1, make) });
    }
  });
  after(async () => {
    agent.destroy();
    for (const { side } of running) await side.stop();
    fs.rmSync(folder, { recursive: true });
  });

  const onBoth = async (
    kind: string,
    play: (side: Side, port: number, name: string) => Promise<void>,
  ): Promise<void> => {
    for (const { name, kind: its, side } of running) {
      if (its !== kind) continue;
      await play(side, side.ports.get("main")!, name).catch((error: unknown) => {
        throw new Error(`on ${name}`, { cause: error });
      });
    }
  };
  const counter = async (side: Side, name: string): Promise<number> =>
    (await countersOf(side, new RegExp(`${name}$`)))[name] ?? 0;

  test("no requests: 503 with the flag OM", () =>
    onBoth("requests", async (side, port, name) => {
      const answer = await waitFor(
        async () => {
          const got = await request(port, agent);
          return got?.status === 503 && got;
        },
        { what: "a refused request" },
      );
      assert.deepEqual(answer, { status: 503, body: "envoy overloaded", connection: undefined });
      const refused = /^503 (\S+) (\S+)$/m;
      const log = (): RegExpMatchArray | null =>
        fs.existsSync(side.log) ? fs.readFileSync(side.log, "utf8").match(refused) : null;
      const [, flags, details] = await waitFor(log, { what: "the access log" });
      // Envoy sets no flag; ours tells such a 503 from any other.
      assert.deepEqual([flags, details], [name === "ours" ? "OM" : "-", "overload"]);
      assert.ok((await counter(side, "http.main.downstream_rq_overload_close")) > 0);
    }));

  test("no kept connections: answers end theirs", () =>
    onBoth("keepalive", async (side, port) => {
      const ended = async (): Promise<boolean> => (await request(port, agent))?.connection === "close";
      await waitFor(ended, { what: "an answer that ends its connection" });
      assert.ok((await counter(side, "http.main.downstream_cx_overload_disable_keepalive")) > 0);
    }));

  test("no connections: closed before anything is read", () =>
    onBoth("rejected", async (side, port) => {
      await waitFor(async () => (await request(port, agent)) === undefined, { what: "a refused connection" });
      assert.ok((await counter(side, "listener.main.downstream_cx_overload_reject")) > 0);
    }));

  test("no more than two connections, and a place for the next when one has gone", () =>
    onBoth("connections", async (side, port) => {
      const open = (): Promise<net.Socket> =>
        new Promise((resolve, reject) => {
          const socket = net.connect(port, "127.0.0.1", () => resolve(socket));
          socket.once("error", reject);
        });
      const active = async (): Promise<number> => {
        const page = await (await fetch(`http://127.0.0.1:${side.adminPort}/stats?type=Gauges`)).text();
        return Number(/^listener\.main\.downstream_cx_active: (\d+)$/m.exec(page)?.[1]);
      };
      const held = [await open(), await open()];
      await waitFor(async () => (await active()) === 2, { what: "two connections" });
      const third = await open();
      await new Promise((resolve) => {
        third.once("close", resolve).resume();
        third.on("error", () => {});
      });
      assert.equal(await counter(side, "listener.main.downstream_global_cx_overflow"), 1);
      held[0]!.destroy();
      await waitFor(async () => (await active()) === 1, { what: "one connection less" });
      const fresh = new http.Agent();
      assert.equal((await request(port, fresh))?.status, 200);
      for (const socket of held) socket.destroy();
    }));
});
