// A stock Envoy that connects by itself, with its certificate in files: it is served over mutual TLS, and takes the
// roots over SDS.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { envoyPath } from "../../../../tests/tools/envoy-path.ts";
import { freeAddressBlock, startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import type { ProxySync } from "@tulle/config/api";
import { identityOfWeb, provenWorld } from "../testing/proven-world.ts";

const typeUrl = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const tlsContext = typeUrl("transport_sockets.tls.v3.UpstreamTlsContext");

interface Settings {
  readonly folder: string;
  readonly port: number;
  readonly address: string;
}

function bootstrap({ folder, port, address }: Settings): object {
  const file = (name: string) => ({ filename: path.join(folder, name) });
  const http2 = {
    "@type": typeUrl("upstreams.http.v3.HttpProtocolOptions"),
    explicit_http_config: { http2_protocol_options: {} },
  };
  const cluster = (name: string, tls: object) => ({
    name,
    type: "STATIC",
    typed_extension_protocol_options: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2 },
    load_assignment: {
      cluster_name: name,
      endpoints: [
        { lb_endpoints: [{ endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } } }] },
      ],
    },
    transport_socket: { name: "tls", typed_config: { "@type": tlsContext, sni: "tulled.tulle-system.svc", ...tls } },
  });
  const grpc = {
    api_type: "GRPC",
    transport_api_version: "V3",
    grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
  };
  const serverName = { san_type: "DNS", matcher: { exact: "tulled.tulle-system.svc" } };
  return {
    node: {
      id: `sidecar~${address}~web-1.shop~shop.svc.cluster.local`,
      cluster: "web.shop",
      metadata: { INTERCEPTION_MODE: "NONE" },
    },
    admin: { address: { socket_address: { address: "127.0.0.1", port_value: 0 } } },
    dynamic_resources: {
      ads_config: grpc,
      cds_config: { ads: {}, resource_api_version: "V3" },
      lds_config: { ads: {}, resource_api_version: "V3" },
    },
    static_resources: {
      clusters: [
        cluster("xds-grpc", {
          common_tls_context: {
            // Without it Envoy offers no more than TLS 1.2 as a client.
            tls_params: { tls_minimum_protocol_version: "TLSv1_3", tls_maximum_protocol_version: "TLSv1_3" },
            alpn_protocols: ["h2"],
            tls_certificates: [{ certificate_chain: file("chain.pem"), private_key: file("key.pem") }],
            validation_context: { trusted_ca: file("roots.pem"), match_typed_subject_alt_names: [serverName] },
          },
        }),
        cluster("by-sds", {
          common_tls_context: {
            validation_context_sds_secret_config: {
              name: "ROOTCA",
              sds_config: { api_config_source: grpc, resource_api_version: "V3" },
            },
          },
        }),
      ],
    },
  };
}

test("a stock Envoy with a certificate in files is served, and takes the roots", async (context) => {
  const world = await provenWorld(context);
  const folder = temporaryFolder("tulle-ca-");
  const identity = await identityOfWeb(world);
  await writeFile(path.join(folder, "key.pem"), identity.privateKeyPem, { mode: 0o600 });
  await writeFile(path.join(folder, "chain.pem"), identity.certChainPem);
  await writeFile(path.join(folder, "roots.pem"), identity.rootsPem);
  // Its outbound listener has a fixed port, so that the address is of this run alone.
  const address = `${await freeAddressBlock()}.1`;
  const config = path.join(folder, "envoy.json");
  await writeFile(config, JSON.stringify(bootstrap({ folder, port: world.running.xdsTlsAddress!.port, address })));
  const adminFile = path.join(folder, "admin");
  const envoy = await startProcess(
    await envoyPath(),
    ["-c", config, "--admin-address-path", adminFile, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"],
    { name: "envoy" },
  );
  context.after(() => envoy.stop());
  const synced = async (): Promise<boolean> => {
    const [row] = JSON.parse((await world.ask("/debug/syncz")).body) as readonly ProxySync[];
    return row?.types.CDS.state === "SYNCED" && row.types.LDS.state === "SYNCED";
  };
  await waitFor(synced, {
    what: "clusters and listeners to be acknowledged",
    details: () => envoy.output(),
  });
  const connections = JSON.parse((await world.ask("/debug/connections")).body) as readonly {
    readonly identity: string;
  }[];
  assert.deepEqual(
    connections.map((connection) => connection.identity),
    ["spiffe://cluster.local/ns/shop/sa/web"],
  );
  const admin = (await readFile(adminFile, "utf8")).trim();
  const taken = async (): Promise<boolean> => {
    const stats = await (await fetch(`http://${admin}/stats?filter=ROOTCA`)).text();
    return /^sds\.ROOTCA\.update_success: 1$/m.test(stats);
  };
  await waitFor(taken, { what: "the roots", details: () => envoy.output() });
});
