// The whole agent in a mesh with an authority: either data plane gets its configuration over mutual TLS and its
// certificate from the agent's socket, and serves the renewed one after a rotation.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type TLSSocket, connect } from "node:tls";
import { describe, test } from "node:test";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { type EncodedResource, type ResourceTypeName, encodeResource } from "@tulle/xds";
import { messageFromJson } from "@tulle/xds/json";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { envoyPath } from "../../../tests/tools/envoy-path.ts";
import { freeAddressBlock, waitFor } from "../../../tests/tools/processes.ts";
import { runAgent } from "./run-agent.ts";
import { issueTo, type TestAuthority, testAuthority } from "./testing/test-authority.ts";
import { TestControlPlane } from "./testing/test-control-plane.ts";

const listenerPort = 8443;
const webId = "URI:spiffe://cluster.local/ns/shop/sa/web";
const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

const block = await freeAddressBlock();
let lastAddress = 0;
/** Of this process and test alone: admin and health ports are fixed. */
function ownAddress(): string {
  lastAddress += 1;
  return `${block}.${lastAddress}`;
}

function encode(type: ResourceTypeName, json: object): EncodedResource {
  const result = messageFromJson(resourceSchemas[type], json);
  if (!result.ok) assert.fail(JSON.stringify(result.problems));
  return encodeResource(resourceSchemas[type], result.message);
}

/** As translations name secrets of the agent (Istio's form). */
const secret = (name: string): object => ({
  name,
  sds_config: {
    api_config_source: {
      api_type: "GRPC",
      transport_api_version: "V3",
      set_node_on_first_message_only: true,
      grpc_services: [{ envoy_grpc: { cluster_name: "sds-grpc" } }],
    },
    resource_api_version: "V3",
    initial_fetch_timeout: "0s",
  },
});

/** Answers 200 to whoever has a certificate of the mesh. */
function listener(address: string): EncodedResource {
  return encode("LDS", {
    name: "secure",
    address: { socket_address: { address, port_value: listenerPort } },
    filter_chains: [
      {
        transport_socket: {
          name: "envoy.transport_sockets.tls",
          typed_config: {
            "@type": typeUrl("transport_sockets.tls.v3.DownstreamTlsContext"),
            require_client_certificate: true,
            common_tls_context: {
              tls_certificate_sds_secret_configs: [secret("default")],
              combined_validation_context: {
                default_validation_context: {},
                validation_context_sds_secret_config: secret("ROOTCA"),
              },
            },
          },
        },
        filters: [
          {
            name: "http",
            typed_config: {
              "@type": typeUrl("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: "s",
              route_config: {
                name: "r",
                virtual_hosts: [
                  {
                    name: "v",
                    domains: ["*"],
                    routes: [
                      { match: { prefix: "/" }, direct_response: { status: 200, body: { inline_string: "in" } } },
                    ],
                  },
                ],
              },
              http_filters: [{ name: "router", typed_config: { "@type": typeUrl("filters.http.router.v3.Router") } }],
            },
          },
        ],
      },
    ],
  });
}

/** Stands for a peer of the mesh: it has the same certificate as the workload under test. */
async function handshake(host: string, mesh: TestAuthority): Promise<TLSSocket> {
  const { keyPem, chainPem } = await issueTo(mesh.authority);
  const socket = connect({
    host,
    port: listenerPort,
    ca: mesh.authority.trustBundlePem,
    key: keyPem,
    cert: chainPem,
    // Workloads are known by their SPIFFE id, which the caller compares.
    checkServerIdentity: () => undefined,
  });
  await once(socket, "secureConnect");
  return socket;
}

async function ask(socket: TLSSocket): Promise<string> {
  socket.write("GET / HTTP/1.1\r\nhost: web\r\n\r\n");
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString("latin1").split("\r\n")[0]!;
}

/** Renewed after half of it; the other half is what a busy machine may take for that. */
const ttlMs = 24_000;

describe("an agent with its proxy", { concurrency: true }, () => {
  for (const dataPlane of ["envoy", "tulle"] as const) {
    test(`${dataPlane} serves the workload's certificate, and the renewed one to new connections`, async (context) => {
      const mesh = await testAuthority(context, { ttlMs });
      const controlPlane = await TestControlPlane.start(mesh);
      const address = ownAddress();
      controlPlane.declared.set("CDS", new Map());
      controlPlane.declared.set("LDS", new Map([["secure", listener(address)]]));
      const entries: LogEntry[] = [];
      const stop = new AbortController();
      const ended = runAgent(
        {
          POD_NAME: "web-1",
          POD_NAMESPACE: "shop",
          SERVICE_ACCOUNT: "web",
          INSTANCE_IP: address,
          TULLE_XDS_ADDRESS: new URL(controlPlane.url).host,
          TULLE_STATE_DIR: mesh.folder,
          TULLE_CA_ROOT_FILE: mesh.rootsFile,
          TULLE_TOKEN_FILE: mesh.tokenFile,
          TULLE_PROXY: dataPlane,
          TULLE_ENVOY: await envoyPath(),
          TULLE_PROXY_LOG_LEVEL: "error",
        },
        { stop: stop.signal, logging: new Logging({ sink: (entry) => entries.push(entry) }) },
      );
      mesh.cleanUp.defer(async () => {
        stop.abort();
        assert.equal(await ended, 0);
      });
      const details = (): string => entries.map(({ level, message }) => `${level} ${message}`).join("\n");
      const first = await waitFor(() => handshake(address, mesh), { what: "the listener", details });
      mesh.cleanUp.defer(() => void first.destroy());
      const { subjectaltname, serialNumber } = first.getPeerCertificate();
      assert.equal(subjectaltname, webId);
      assert.equal(await ask(first), "HTTP/1.1 200 OK");
      await waitFor(
        async () => {
          const socket = await handshake(address, mesh);
          const { serialNumber: shown } = socket.getPeerCertificate();
          socket.destroy();
          return shown !== serialNumber;
        },
        { what: "the renewed certificate", details },
      );
      assert.equal(await ask(first), "HTTP/1.1 200 OK", "the connection of before lives on");
      const metrics = await (await fetch(`http://${address}:15020/stats/prometheus`)).text();
      assert.match(metrics, /^istio_agent_cert_expiry_seconds\{resource_name="default"\} \d+$/m);
      assert.match(metrics, /^envoy_http_downstream_rq_total\{/m, "the proxy's own are there too");
      const families = metrics.match(/^# TYPE \S+/gm) ?? [];
      assert.equal(new Set(families).size, families.length, "no family twice, which Prometheus would refuse");
      assert.ok(controlPlane.story.includes("ads of spiffe://cluster.local/ns/shop/sa/web"), controlPlane.story.join());
    });
  }
});
