// Every golden xDS file is served to a real Envoy over ADS in each run, and has to be acknowledged whole. One Envoy takes all
// of them in turn, so that each is also a change from the one before.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AdsConnection, type RunningAdsServer, serveAds } from "@tulle/xds";
import { envoyPath } from "../tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import { goldenCaseNames, resourcesFromGolden, storedFiles } from "./golden-cases.ts";

const types = ["CDS", "EDS", "LDS", "RDS"] as const;

describe("a stock Envoy acknowledges every golden file", async () => {
  let server: RunningAdsServer;
  let envoy: StartedProcess;
  let folder: string;
  const connected = Promise.withResolvers<AdsConnection>();

  before(async () => {
    server = await serveAds({
      address: { host: "127.0.0.1", port: 0 },
      handlers: {
        onConnect: (connection) => connected.resolve(connection),
        onSubscribe: () => undefined,
        onDisconnect: () => undefined,
      },
    });
    assert.ok("port" in server.address);
    folder = await mkdtemp(path.join(tmpdir(), "golden-envoy-"));
    const bootstrap = path.join(folder, "bootstrap.json");
    await writeFile(bootstrap, JSON.stringify(envoyBootstrap(server.address.port)));
    envoy = await startProcess(await envoyPath(), [
      "-c",
      bootstrap,
      "--disable-hot-restart",
      "--concurrency",
      "1",
      "-l",
      "warning",
    ]);
  });

  after(async () => {
    await envoy?.stop();
    await server?.close();
    await rm(folder, { recursive: true, force: true });
  });

  for (const name of await goldenCaseNames()) {
    const files = [...(await storedFiles(name))].filter(([file]) => file.endsWith(".xds.yaml"));
    for (const [file, text] of files) {
      test(`${name}/${file}`, async () => {
        const connection = await connected.promise;
        const resources = resourcesFromGolden(text);
        for (const type of types) connection.set(type, resources[type]);
        // The server takes up what was declared at the end of this turn; before it, the states are those of the last file.
        await nextTurn();
        await waitFor(() => settled(connection, resources), {
          what: "Envoy's verdict on every resource",
          timeoutMs: 30_000,
          details: () => `${JSON.stringify(stateOf(connection))}\n${envoy.output()}`,
        });
        assert.deepEqual(refusals(connection), []);
      });
    }
  }
});

type Resources = ReturnType<typeof resourcesFromGolden>;

/** All types that hold something have been sent and acknowledged, or one has been refused. */
function settled(connection: AdsConnection, resources: Resources): boolean {
  const states = types.map((type) => ({ type, state: connection.status().get(type)?.state }));
  if (states.some(({ state }) => state === "ERROR")) return true;
  return states.every(({ type, state }) => state === "SYNCED" || (resources[type].size === 0 && state !== "STALE"));
}

function stateOf(connection: AdsConnection): unknown {
  return types.map((type) => [type, connection.status().get(type)?.state]);
}

function refusals(connection: AdsConnection): unknown[] {
  return [...connection.status().values()].flatMap((status) => [...status.rejected]);
}

function envoyBootstrap(xdsPort: number): unknown {
  const socketAddress = { address: "127.0.0.1", port_value: xdsPort };
  const http2 = {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    explicit_http_config: { http2_protocol_options: {} },
  };
  return {
    node: { id: "sidecar~127.0.0.1~golden.test~test.svc.cluster.local", cluster: "golden" },
    // As in every bootstrap that the agent writes.
    layered_runtime: { layers: [{ name: "mesh", static_layer: { "re2.max_program_size.error_level": 32_768 } }] },
    dynamic_resources: {
      ads_config: {
        api_type: "GRPC",
        transport_api_version: "V3",
        grpc_services: [{ envoy_grpc: { cluster_name: "xds" } }],
      },
      cds_config: { ads: {}, resource_api_version: "V3" },
      lds_config: { ads: {}, resource_api_version: "V3" },
    },
    static_resources: {
      clusters: [
        {
          name: "xds",
          type: "STATIC",
          typed_extension_protocol_options: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2 },
          load_assignment: {
            cluster_name: "xds",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: socketAddress } } }] }],
          },
        },
      ],
    },
  };
}
