// Endpoints of several priorities: which hosts are asked, by this proxy and by a stock Envoy, while hosts of the first
// are well or not.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import type net from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { extension, loopback, router } from "../testing/envoy-json.ts";
import { type Side, startEnvoy, startOurs } from "../testing/parity-pair.ts";

interface Row {
  readonly name: string;
  /** By priority; a host is `+` or, where it is not healthy, `-`. */
  readonly levels: Readonly<Record<number, string>>;
  readonly panicThreshold?: number;
  /** Hosts that are asked, as `priority.place`. */
  readonly expected: string;
}

const rows: readonly Row[] = [
  { name: "the first while it is well", levels: { 0: "++", 1: "++" }, expected: "0.0 0.1" },
  { name: "written in the other order", levels: { 1: "+", 0: "+" }, expected: "0.0" },
  { name: "the next where the first is ill", levels: { 0: "--", 1: "++" }, expected: "1.0 1.1" },
  { name: "both where the first lacks much", levels: { 0: "+-", 1: "++" }, expected: "0.0 1.0 1.1" },
  { name: "the first alone where it lacks little", levels: { 0: "+++-", 1: "++" }, expected: "0.0 0.1 0.2" },
  { name: "a gap between them", levels: { 0: "-", 5: "+" }, expected: "5.0" },
  { name: "no first one", levels: { 3: "++" }, expected: "3.0 3.1" },
  { name: "the third", levels: { 0: "-", 1: "-", 2: "+" }, expected: "2.0" },
  { name: "all, in panic", levels: { 0: "--", 1: "-" }, expected: "0.0 0.1 1.0" },
  { name: "nobody without panic", levels: { 0: "-", 1: "-" }, panicThreshold: 0, expected: "none" },
  { name: "no panic where the level is whole", levels: { 0: "+++-" }, panicThreshold: 80, expected: "0.0 0.1 0.2" },
  { name: "a level in panic beside one that is well", levels: { 0: "+-----", 1: "+" }, expected: "0.0 1.0" },
];

describe("priorities", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-priorities-"));
  const servers: http.Server[] = [];
  const sides: { ours?: Side; envoy?: Side } = {};

  const startHost = async (name: string): Promise<number> => {
    const server = http.createServer((_request, response) => response.end(name));
    servers.push(server);
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    return (server.address() as net.AddressInfo).port;
  };

  before(async () => {
    const clusters: object[] = [];
    for (const [index, { levels, panicThreshold }] of rows.entries()) {
      const endpoints: object[] = [];
      // In the order written: objects would sort numbers.
      const order = index === 1 ? ["1", "0"] : Object.keys(levels);
      for (const priority of order) {
        const hosts = levels[Number(priority)]!;
        const lbEndpoints = await Promise.all(
          hosts.split("").map(async (sign, place) => ({
            endpoint: { address: loopback(await startHost(`${priority}.${place}`)) },
            health_status: sign === "+" ? "HEALTHY" : "UNHEALTHY",
          })),
        );
        endpoints.push({ priority: Number(priority), lb_endpoints: lbEndpoints });
      }
      clusters.push({
        name: `c${index}`,
        type: "STATIC",
        ...(panicThreshold !== undefined && {
          common_lb_config: { healthy_panic_threshold: { value: panicThreshold } },
        }),
        load_assignment: { cluster_name: `c${index}`, endpoints },
      });
    }
    const bootstrap = (): string =>
      JSON.stringify({
        admin: { address: loopback(0) },
        static_resources: { clusters, listeners: rows.map((_row, index) => listener(index)) },
      });
    sides.ours = await startOurs("", bootstrap);
    sides.envoy = await startEnvoy(folder, rows.length, bootstrap);
  });

  after(async () => {
    await sides.ours?.stop();
    await sides.envoy?.stop();
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
    fs.rmSync(folder, { recursive: true });
  });

  for (const [index, { name, expected }] of rows.entries()) {
    test(name, async () => {
      assert.deepEqual(
        { envoy: await asked(sides.envoy!, index), ours: await asked(sides.ours!, index) },
        { envoy: expected, ours: expected },
      );
    });
  }
});

function listener(index: number): object {
  const route = { match: { prefix: "/" }, route: { cluster: `c${index}` } };
  return {
    name: `l${index}`,
    address: loopback(0),
    filter_chains: [
      {
        filters: [
          {
            name: "hcm",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: "s",
              route_config: { virtual_hosts: [{ name: "v", domains: ["*"], routes: [route] }] },
              http_filters: [router],
            },
          },
        ],
      },
    ],
  };
}

/** Enough that a host with a twentieth of the requests is missed once in ten million runs. */
const calls = 320;

async function asked(side: Side, index: number): Promise<string> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const call = (): Promise<string> =>
    new Promise((resolve, reject) => {
      http
        .get({ host: "127.0.0.1", port: side.ports.get(`l${index}`)!, agent }, (response) => {
          let body = "";
          response.on("data", (chunk: Buffer) => (body += chunk.toString()));
          response.on("end", () => resolve(response.statusCode === 200 ? body : "none"));
        })
        .on("error", reject);
    });
  const names = new Set(await Promise.all(Array.from({ length: calls }, call)));
  agent.destroy();
  return [...names].sort((a, b) => a.localeCompare(b)).join(" ");
}
