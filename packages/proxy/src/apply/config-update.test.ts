// Subscribing and applying in two threads: all that passes between them is plain data, and requests see what came of
// it.
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import { type DescMessage, toBinary } from "@bufbuild/protobuf";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { FromWorker, ToWorker } from "../testing/config-worker.ts";
import { extension, loopback, router } from "../testing/envoy-json.ts";
import { fromConfiguration } from "../testing/from-configuration.ts";
import type { ConfigUpdate } from "./config-update.ts";

const ads = { ads: {}, resource_api_version: "V3" };

/** Decoded as the client of xDS decodes them: routes stay bytes. */
function update(type: ConfigUpdate["type"], resources: Readonly<Record<string, object>>): ConfigUpdate {
  const schema: DescMessage = resourceSchemas[type];
  const messages = Object.entries(resources).map(([name, json]) => {
    const message = fromConfiguration(schema, json);
    return [name, type === "RDS" ? toBinary(schema, message) : message] as const;
  });
  const versions = new Map(Object.keys(resources).map((name) => [name, "1"]));
  const rest = { versionInfo: "1", nonce: "1", versions, removed: [], errors: [], controlPlaneId: "" };
  return { type, resources: new Map<string, unknown>(messages), ...rest } as ConfigUpdate;
}

type Applied = Extract<FromWorker, { verdict: unknown }>;

interface Thread {
  readonly said: readonly FromWorker[];
  readonly apply: (update: ConfigUpdate) => Promise<Applied>;
}

/** Updates go one after the other, as the client of xDS hands them over. */
async function startThread(t: TestContext): Promise<Thread> {
  const worker = new Worker(new URL("../testing/config-worker.ts", import.meta.url));
  const said: FromWorker[] = [];
  worker.on("message", (message: FromWorker) => said.push(message));
  const ended = new Promise((resolve) => void worker.once("exit", resolve));
  t.after(() => {
    worker.postMessage({ end: true } satisfies ToWorker);
    return ended;
  });
  const verdicts = (): Applied[] => said.filter((message) => "verdict" in message);
  const apply = async (sent: ConfigUpdate): Promise<Applied> => {
    const before = verdicts().length;
    worker.postMessage({ update: sent } satisfies ToWorker);
    return waitFor(() => verdicts()[before], { what: `the verdict on ${sent.type}` });
  };
  return { said, apply };
}

test("a thread that is sent updates serves them, and says what it needs and refuses", async (t) => {
  const host = http.createServer((_request, response) => response.end("from the host")).listen(0, "127.0.0.1");
  t.after(() => host.close());
  await waitFor(() => host.listening, { what: "the host" });
  const { said, apply } = await startThread(t);
  const eds = { type: "EDS", eds_cluster_config: { eds_config: ads }, connect_timeout: "5s" };
  await apply(update("CDS", { good: { name: "good", ...eds }, bad: { name: "bad", type: "ORIGINAL_DST" } }));
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "in",
    rds: { route_config_name: "routes", config_source: ads },
    http_filters: [router],
  };
  const chain = { filters: [{ name: "manager", typed_config: manager }] };
  await apply(update("LDS", { in: { name: "in", address: loopback(0), filter_chains: [chain] } }));
  const { port } = host.address() as AddressInfo;
  const assignment = {
    cluster_name: "good",
    endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(port) } }] }],
  };
  await apply(update("EDS", { good: assignment }));
  const routes = [{ match: { prefix: "/" }, route: { cluster: "good" } }];
  const last = await apply(
    update("RDS", { routes: { name: "routes", virtual_hosts: [{ name: "all", domains: ["*"], routes }] } }),
  );

  assert.deepEqual(
    said.filter((message) => "needs" in message),
    [
      { needs: "EDS", names: new Set(["good"]) },
      { needs: "RDS", names: new Set(["routes"]) },
    ],
  );
  const refused = said.flatMap((message) => ("verdict" in message ? message.verdict.map(({ name }) => name) : []));
  assert.deepEqual(refused, ["bad"]);
  for (const stage of ["clusters", "listeners"]) {
    await waitFor(() => said.some((each) => "warm" in each && each.warm === stage), { what: `warm ${stage}` });
  }
  const answer = await fetch(`http://127.0.0.1:${last.ports[0]}/`);
  assert.equal(await answer.text(), "from the host");
});
