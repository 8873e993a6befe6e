// Clusters of token endpoints outside the mesh: the gateway's own calls to OpenID providers elsewhere.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { BindConfigSchema } from "@tulle/xds/envoy/config/core/v3/address_pb";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  ClusterSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { UpstreamTlsContextSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import type { LoginProvider } from "../snapshot/browser-logins.ts";
import { tokenClusterName } from "./browser-login.ts";
import { durationOfMs, socketAddress } from "./messages.ts";
import { exactName, tlsParams, upstreamTlsSocket } from "./tls-context.ts";
import { machineRoots } from "./upstream-tls.ts";

const connectTimeoutMs = 10_000;

/** A pod of one machine has a loopback address of its own, from which nothing outside can be reached. */
export const fromAnyAddress: MessageInitShape<typeof BindConfigSchema> = {
  sourceAddress: { address: "0.0.0.0", portSpecifier: { case: "portValue", value: 0 } },
  extraSourceAddresses: [{ address: { address: "::", portSpecifier: { case: "portValue", value: 0 } } }],
};

/** One for each origin. */
export function tokenClusters(providers: readonly LoginProvider[]): readonly Cluster[] {
  const byName = new Map(providers.map((provider) => [tokenClusterName(provider), provider]));
  return [...byName.values()].map(tokenCluster);
}

function tokenCluster(provider: LoginProvider): Cluster {
  const name = tokenClusterName(provider);
  const url = new URL(provider.tokenEndpoint);
  const isTls = url.protocol === "https:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const address = socketAddress(host, url.port === "" ? (isTls ? 443 : 80) : Number(url.port));
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STRICT_DNS },
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
    connectTimeout: durationOfMs(connectTimeoutMs),
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address, hostname: host } } }] }],
    },
    ...(isTls ? { transportSocket: upstreamTlsSocket(publicTls(host)) } : {}),
    upstreamBindConfig: fromAnyAddress,
  });
}

/** The certificate has to be one that the machine trusts, for that very host: secrets of the client go there. */
export function publicTls(host: string, alpnProtocols: string[] = []) {
  return create(UpstreamTlsContextSchema, {
    sni: host,
    commonTlsContext: {
      tlsParams: tlsParams("TLSV1_2"),
      alpnProtocols,
      validationContextType: {
        case: "validationContext",
        value: {
          trustedCa: { specifier: { case: "filename", value: machineRoots } },
          matchTypedSubjectAltNames: [exactName(host)],
        },
      },
    },
  });
}
