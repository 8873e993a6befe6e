// The filter chains of a sidecar's inbound port, by its mode of mutual TLS: which connections it takes, and how it
// tells them apart (Istio: getFilterChainMatchOptions). HTTP and TCP ports share this; their network filters differ.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Filter,
  type FilterChain,
  FilterChainSchema,
  type ListenerFilter,
  ListenerFilterSchema,
} from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { TlsInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb";
import type { Listener } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import type { PortMutualTls } from "../scope/proxy-view.ts";
import { connectionStatsMetadata, durationOfMs, pack } from "./messages.ts";
import { downstreamTlsSocket, httpServerAlpn, meshClientAlpn, workloadServerTls } from "./tls-context.ts";

/** Fields of the listener. */
export interface InboundChains extends Partial<Pick<Listener, "listenerFiltersTimeout">> {
  readonly filterChains: FilterChain[];
  readonly listenerFilters: ListenerFilter[];
  readonly continueOnListenerFiltersTimeout?: true;
}

/**
 * Who sends nothing for this long at a TCP port waits for the server to speak first, as clients of databases do: that
 * is no TLS. Istio's own default is to wait for ever.
 */
const silenceMs = 5000;

type ChainInit = MessageInitShape<typeof FilterChainSchema> & { $typeName?: never };

/**
 * `filters` are those of every chain. A connection that no chain matches is closed: plain text at a STRICT port, and at
 * an HTTP port TLS that is not the mesh's, since the port has said that it speaks HTTP. At a TCP port foreign TLS is
 * the application's.
 */
export function inboundFilterChains(
  protocol: "http" | "tcp",
  mutualTls: PortMutualTls | undefined,
  filters: readonly Filter[],
): InboundChains {
  const common: ChainInit = protocol === "tcp" ? { metadata: connectionStatsMetadata() } : {};
  if (mutualTls === undefined) return { filterChains: [chain(filters, common)], listenerFilters: [] };
  const { mode, trustDomain, minimumTls: minimum } = mutualTls;
  const alpn = protocol === "http" ? httpServerAlpn : [];
  const transportSocket = downstreamTlsSocket(workloadServerTls({ trustDomain, alpn, minimum }));
  const listenerFilters = [tlsInspector()];
  if (mode === "STRICT") {
    const filterChainMatch = { transportProtocol: "tls" };
    return {
      filterChains: [chain(filters, { ...common, name: "mutual-tls", filterChainMatch, transportSocket })],
      listenerFilters,
    };
  }
  const mesh = chain(filters, {
    ...common,
    name: "mutual-tls",
    filterChainMatch: { transportProtocol: "tls", applicationProtocols: [...meshClientAlpn] },
    transportSocket,
  });
  const plain = chain(filters, {
    ...common,
    name: "plain-text",
    filterChainMatch: { transportProtocol: "raw_buffer" },
  });
  const foreign = chain(filters, { ...common, name: "foreign-tls", filterChainMatch: { transportProtocol: "tls" } });
  if (protocol === "http") return { filterChains: [mesh, plain], listenerFilters };
  return {
    filterChains: [mesh, foreign, plain],
    listenerFilters,
    listenerFiltersTimeout: durationOfMs(silenceMs),
    continueOnListenerFiltersTimeout: true,
  };
}

function chain(filters: readonly Filter[], init: ChainInit): FilterChain {
  return create(FilterChainSchema, { ...init, filters: [...filters] });
}

/** Reads the ClientHello: its ALPN and server name choose the chain. */
export function tlsInspector(): ListenerFilter {
  return create(ListenerFilterSchema, {
    name: "envoy.filters.listener.tls_inspector",
    configType: { case: "typedConfig", value: pack(TlsInspectorSchema, {}) },
  });
}
