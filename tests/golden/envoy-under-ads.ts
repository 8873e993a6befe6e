// A real Envoy on an ADS server of this process: it is offered whole sets of resources, one after another, and says
// what it thinks of each. What it runs as does not matter: it takes the set of any proxy.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AdsConnection, EncodedResource, RejectedResource, RunningAdsServer } from "@tulle/xds";
import { serveAds } from "@tulle/xds";
import { envoyPath } from "../tools/envoy-path.ts";
import { type StartedProcess, startProcess, waitFor } from "../tools/processes.ts";
import { credentials, sdsCluster, serveSecrets, workloadSecrets } from "../tools/workload-secrets.ts";
import { GoldenFiles } from "./golden-files.ts";

const types = ["CDS", "EDS", "LDS", "RDS"] as const;

export type ResourceSet = Readonly<Record<(typeof types)[number], ReadonlyMap<string, EncodedResource>>>;

export class EnvoyUnderAds implements AsyncDisposable {
  readonly #server: RunningAdsServer;
  readonly #secretServer: RunningAdsServer;
  readonly #envoy: StartedProcess;
  readonly #files: GoldenFiles;
  readonly #connected: Promise<AdsConnection>;

  private constructor(
    server: RunningAdsServer,
    secretServer: RunningAdsServer,
    envoy: StartedProcess,
    files: GoldenFiles,
    connected: Promise<AdsConnection>,
  ) {
    this.#server = server;
    this.#secretServer = secretServer;
    this.#envoy = envoy;
    this.#files = files;
    this.#connected = connected;
  }

  static async start(): Promise<EnvoyUnderAds> {
    const connected = Promise.withResolvers<AdsConnection>();
    const files = await GoldenFiles.create();
    const { folder, workload } = files;
    const server = await serveAds({
      address: { host: "127.0.0.1", port: 0 },
      handlers: {
        onConnect: (connection) => connected.resolve(connection),
        // Credentials of gateways come by ADS: whatever Secret is named is there.
        onSubscribe: (connection, { type, names }) => {
          if (type === "SDS" && names !== "*") connection.set("SDS", credentials(names, workload));
        },
        onDisconnect: () => undefined,
      },
    });
    assert.ok("port" in server.address);
    const socketPath = path.join(folder, "sds.sock");
    const secretServer = await serveSecrets(socketPath, workloadSecrets(workload));
    const bootstrap = path.join(folder, "bootstrap.json");
    await writeFile(bootstrap, JSON.stringify(envoyBootstrap(server.address.port, socketPath)));
    const args = ["-c", bootstrap, "--disable-hot-restart", "--concurrency", "1", "-l", "warning"];
    const envoy = await startProcess(await envoyPath(), args);
    return new EnvoyUnderAds(server, secretServer, envoy, files, connected.promise);
  }

  /** A golden file as this machine can take it: the files that it names are there. */
  withFiles(text: string): string {
    return this.#files.place(text);
  }

  /** Replaces everything that Envoy runs; what it refuses of it, once it has acknowledged or refused each resource. */
  async offer(resources: ResourceSet): Promise<readonly RejectedResource[]> {
    const connection = await this.#connected;
    for (const type of types) connection.set(type, resources[type]);
    // The server takes up what was declared at the end of this turn; before it, the states are those of the last set.
    await nextTurn();
    await waitFor(() => hasVerdict(connection, resources), {
      what: "Envoy's verdict on every resource",
      details: () => `${JSON.stringify(states(connection))}\n${this.#envoy.output()}`,
    });
    return [...connection.status().values()].flatMap((status) => [...status.rejected]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#envoy.stop();
    await Promise.all([this.#server.close(), this.#secretServer.close()]);
    await this.#files[Symbol.asyncDispose]();
  }
}

function states(connection: AdsConnection): readonly { type: (typeof types)[number]; state: string | undefined }[] {
  return types.map((type) => ({ type, state: connection.status().get(type)?.state }));
}

/** All types that hold something have been sent and acknowledged, or one has been refused. */
function hasVerdict(connection: AdsConnection, resources: ResourceSet): boolean {
  const all = states(connection);
  if (all.some(({ state }) => state === "ERROR")) return true;
  return all.every(({ type, state }) => state === "SYNCED" || (resources[type].size === 0 && state !== "STALE"));
}

function envoyBootstrap(xdsPort: number, sdsPath: string): unknown {
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
        sdsCluster(sdsPath),
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
