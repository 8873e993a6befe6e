// Connections whose filter chain says what it said before go on when other chains of their listener change, come or go;
// those of a chain that has changed end, and so do all when the listener itself changes. Beside a stock Envoy that gets
// the same configuration.
import assert from "node:assert/strict";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Any } from "@bufbuild/protobuf/wkt";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { adsBootstrap } from "../testing/ads-bootstrap.ts";
import { connectionManager, extension, loopback, staticCluster } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";
import { packed, startXdsStage, typeUrls, type XdsStage } from "../testing/xds-stage.ts";

const bootstrap = (xdsPort: number): string =>
  adsBootstrap(xdsPort, ["lds_config"], {
    clusters: [staticCluster("echo", [(echo.address() as net.AddressInfo).port])],
  });

/** Says all that it hears. */
const echo = net.createServer((socket) => {
  socket.on("error", () => undefined);
  socket.pipe(socket);
});

/** Each takes one client's connections: who dials from 127.0.0.<last>. */
function chain(last: number, stat_prefix: string, kind: "http" | "tcp"): object {
  const route = { match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: stat_prefix } } };
  const virtualHost = { name: "all", domains: ["*"], routes: [route] };
  const typed_config =
    kind === "tcp"
      ? { "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"), stat_prefix, cluster: "echo" }
      : connectionManager([], { stat_prefix, route_config: { virtual_hosts: [virtualHost] } });
  return {
    name: `of-${last}`,
    filter_chain_match: { source_prefix_ranges: [{ address_prefix: `127.0.0.${last}`, prefix_len: 32 }] },
    filters: [{ name: kind, typed_config }],
  };
}
const listener = (chains: readonly object[], more: object = {}): Any =>
  packed(ListenerSchema, { name: "l", address: loopback(0), filter_chains: chains, ...more });

class Client {
  readonly #socket: net.Socket;
  received = "";
  hasEnded = false;

  constructor(port: number, last: number) {
    this.#socket = net.connect({ host: "127.0.0.1", port, localAddress: `127.0.0.${last}` });
    this.#socket.on("data", (chunk) => (this.received += String(chunk)));
    for (const end of ["end", "close", "error"]) this.#socket.on(end, () => (this.hasEnded = true));
  }

  async exchange(sent: string, expected: RegExp): Promise<string> {
    this.received = "";
    this.#socket.write(sent);
    await waitFor(() => expected.test(this.received) || this.hasEnded, {
      what: `an answer like ${expected}`,
      details: () => this.received,
    });
    return this.received;
  }

  close(): void {
    this.#socket.destroy();
  }
}

const get = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-kept-chains-"));
const start = [chain(2, "http_a", "http"), chain(3, "tcp_b", "tcp"), chain(4, "http_c", "http")];
const sides: Record<string, Side> = {};
let xds: XdsStage;
let current = listener(start);
let version = 0;

before(async () => {
  await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  xds = await startXdsStage({
    onRequest: ({ versionInfo, typeUrl }, stream) => {
      if (typeUrl === typeUrls.listeners && versionInfo === "") stream.send(typeUrl, "start", [current]);
    },
  });
  sides["tulle"] = await startOurs("", () => bootstrap(xds.port));
  sides["envoy"] = await startEnvoy(folder, 1, () => bootstrap(xds.port));
});

after(async () => {
  for (const side of Object.values(sides)) await side.stop();
  await xds.stop();
  echo.close();
  fs.rmSync(folder, { recursive: true });
});

async function stat({ adminPort }: Side, name: string): Promise<number> {
  const page = await (
    await fetch(`http://127.0.0.1:${adminPort}/stats?filter=${encodeURIComponent(`^${name}$`)}`)
  ).text();
  return Number(/: (\d+)/.exec(page)?.[1] ?? 0);
}

/** Sends it to both, and waits until they have taken it. */
async function change(next: Any): Promise<void> {
  current = next;
  const name = "listener_manager\\.lds\\.update_success";
  const taken = await Promise.all(Object.values(sides).map((side) => stat(side, name)));
  version += 1;
  for (const stream of xds.streams) stream.send(typeUrls.listeners, `v${version}`, [next]);
  for (const [index, side] of Object.values(sides).entries()) {
    await waitFor(async () => (await stat(side, name)) > taken[index]!, { what: "the listener to be taken" });
  }
}

const portOf = async ({ adminPort }: Side): Promise<number> => {
  const page = await (await fetch(`http://127.0.0.1:${adminPort}/listeners`)).text();
  return Number(/:(\d+)\s*$/m.exec(page)![1]);
};

/** A connection through each chain that has said something. */
async function connectAll(side: Side): Promise<readonly [a: Client, b: Client, c: Client]> {
  const port = await portOf(side);
  const [a, b, c] = [2, 3, 4].map((last) => new Client(port, last)) as [Client, Client, Client];
  await a.exchange(get, /http_a$/);
  await b.exchange("one", /^one$/);
  await c.exchange(get, /http_c$/);
  return [a, b, c];
}

const closes = (answer: string): boolean => /^connection: close\r$/im.test(answer);

for (const [name, next, drained] of [
  ["a chain changes", [start[0]!, start[1]!, chain(4, "http_d", "http")], 1],
  ["a chain comes", [...start, chain(5, "http_e", "http")], 0],
  ["the chains come in another order, and one goes", [start[1]!, start[0]!], 1],
] as const) {
  test(name, async () => {
    await change(listener(start));
    const clients = new Map<string, Awaited<ReturnType<typeof connectAll>>>();
    for (const [kind, side] of Object.entries(sides)) clients.set(kind, await connectAll(side));
    const drainedBefore = await Promise.all(
      Object.values(sides).map((side) => stat(side, "listener_manager\\.total_filter_chains_draining")),
    );
    await change(listener(next));
    for (const [index, [kind, [a, b, c]]] of [...clients].entries()) {
      assert.ok(!closes(await a.exchange(get, /http_a$/)), `${kind}: a goes on`);
      assert.equal(await b.exchange("two", /^two$/), "two", kind);
      const isKept = drained === 0;
      assert.equal(!closes(await c.exchange(get, /http_c$/)), isKept, `${kind}: c`);
      const now = await stat(Object.values(sides)[index]!, "listener_manager\\.total_filter_chains_draining");
      assert.equal(now - drainedBefore[index]!, drained, `${kind}: chains that drain`);
      for (const client of [a, b, c]) client.close();
    }
  });
}

test("what all chains may have been made by changes", async () => {
  await change(listener(start));
  const clients = new Map<string, Awaited<ReturnType<typeof connectAll>>>();
  for (const [kind, side] of Object.entries(sides)) clients.set(kind, await connectAll(side));
  await change(listener(start, { per_connection_buffer_limit_bytes: 4096 }));
  for (const [kind, [a, b, c]] of clients) {
    assert.ok(closes(await a.exchange(get, /http_a$/)), kind);
    assert.ok(closes(await c.exchange(get, /http_c$/)), kind);
    for (const client of [a, b, c]) client.close();
  }
});
