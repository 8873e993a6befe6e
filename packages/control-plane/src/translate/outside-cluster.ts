// Clusters of hosts outside the mesh that proxies ask themselves, and look up in DNS: token endpoints, and where traces
// and logs go.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { BindConfigSchema } from "@tulle/xds/envoy/config/core/v3/address_pb";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  ClusterSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { UpstreamTlsContextSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/tls_pb";
import { durationOfMs, socketAddress } from "./messages.ts";
import { exactName, tlsParams, upstreamTlsSocket } from "./tls-context.ts";
import { machineRoots } from "./upstream-tls.ts";

const connectTimeoutMs = 10_000;

/** A pod of one machine has a loopback address of its own, from which nothing outside can be reached. */
export const fromAnyAddress: MessageInitShape<typeof BindConfigSchema> = {
  sourceAddress: { address: "0.0.0.0", portSpecifier: { case: "portValue", value: 0 } },
  extraSourceAddresses: [{ address: { address: "::", portSpecifier: { case: "portValue", value: 0 } } }],
};

/**
 * An answer holds for its own time, and for a minute where it says none (Istio: dnsRefreshRate). Without one a proxy
 * soon asks again.
 */
export const dnsRefresh = {
  dnsRefreshRate: durationOfMs(60_000),
  dnsFailureRefreshRate: { baseInterval: durationOfMs(1_000), maxInterval: durationOfMs(10_000) },
  respectDnsTtl: true,
} satisfies MessageInitShape<typeof ClusterSchema>;

export interface OutsideHost {
  /** A name or an address. */
  readonly host: string;
  readonly port: number;
  /** Missing = in the clear. */
  readonly tls?: { readonly alpnProtocols: readonly string[] } | undefined;
  /** Missing = HTTP/1.1. */
  readonly protocolOptions?: NonNullable<MessageInitShape<typeof ClusterSchema>["typedExtensionProtocolOptions"]>;
}

export function outsideCluster(name: string, { host, port, tls, protocolOptions = {} }: OutsideHost): Cluster {
  const address = socketAddress(host, port);
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STRICT_DNS },
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
    ...dnsRefresh,
    connectTimeout: durationOfMs(connectTimeoutMs),
    typedExtensionProtocolOptions: protocolOptions,
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address, hostname: host } } }] }],
    },
    ...(tls === undefined ? {} : { transportSocket: upstreamTlsSocket(publicTls(host, tls.alpnProtocols)) }),
    upstreamBindConfig: fromAnyAddress,
  });
}

/** The certificate has to be one that the machine trusts, for that very host: secrets of the client go there. */
function publicTls(host: string, alpnProtocols: readonly string[]) {
  return create(UpstreamTlsContextSchema, {
    sni: host,
    commonTlsContext: {
      tlsParams: tlsParams("TLSV1_2"),
      alpnProtocols: [...alpnProtocols],
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
