// The listener filters that proxies are sent: what looks at a connection before its filter chain is chosen.
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type ListenerFilter, ListenerFilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { HttpInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb";
import { OriginalDstSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb";
import { OriginalSrcSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_src/v3/original_src_pb";
import { ProxyProtocolSchema } from "@tulle/xds/envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb";
import { TlsInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb";
import { pack } from "./messages.ts";

/** Reads the ClientHello: its ALPN and server name choose the chain. */
export function tlsInspector(): ListenerFilter {
  return listenerFilter("tls_inspector", TlsInspectorSchema);
}

/** Looks at plain connections: HTTP, and which version, or something else. */
export function httpInspector(): ListenerFilter {
  return listenerFilter("http_inspector", HttpInspectorSchema);
}

/** Where the client meant to connect before the kernel redirected it. */
export function originalDst(): ListenerFilter {
  return listenerFilter("original_dst", OriginalDstSchema);
}

/** By it the kernel's rules know what a sidecar sends from its clients' addresses (Istio's, and `tulle capture`'s). */
const clientsMark = 1337;

/** The application is called from the client's address. */
export function originalSrc(): ListenerFilter {
  return listenerFilter("original_src", OriginalSrcSchema, { mark: clientsMark });
}

/** Whom the proxy before this one speaks for. It stands before all others, which look at the client's own bytes. */
export function proxyProtocol(): ListenerFilter {
  return listenerFilter("proxy_protocol", ProxyProtocolSchema);
}

/** With the defaults of its settings but for those. */
function listenerFilter<Desc extends DescMessage>(
  name: string,
  schema: Desc,
  settings: MessageInitShape<Desc> = {} as MessageInitShape<Desc>,
): ListenerFilter {
  return create(ListenerFilterSchema, {
    name: `envoy.filters.listener.${name}`,
    configType: { case: "typedConfig", value: pack(schema, settings) },
  });
}
