// The listener filters that proxies are sent: what looks at a connection before its filter chain is chosen.
import { create, type DescMessage } from "@bufbuild/protobuf";
import { type ListenerFilter, ListenerFilterSchema } from "@tulle/xds/envoy/config/listener/v3/listener_components_pb";
import { HttpInspectorSchema } from "@tulle/xds/envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb";
import { OriginalDstSchema } from "@tulle/xds/envoy/extensions/filters/listener/original_dst/v3/original_dst_pb";
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

/** Whom the proxy before this one speaks for. It stands before all others, which look at the client's own bytes. */
export function proxyProtocol(): ListenerFilter {
  return listenerFilter("proxy_protocol", ProxyProtocolSchema);
}

/** With the defaults of its settings. */
function listenerFilter(name: string, settings: DescMessage): ListenerFilter {
  return create(ListenerFilterSchema, {
    name: `envoy.filters.listener.${name}`,
    configType: { case: "typedConfig", value: pack(settings, {}) },
  });
}
