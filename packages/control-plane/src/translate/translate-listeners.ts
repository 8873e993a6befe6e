// Views → listeners: what a sidecar accepts for its workload and from its workload.
import { create } from "@bufbuild/protobuf";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { TrafficDirection } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { InboundPort, SidecarOwn } from "../scope/proxy-view.ts";
import { outboundConnectionManager } from "./http-connection-manager.ts";
import { inboundTraffic, targetOfPort, turnedAwayLogs } from "./inbound-traffic.ts";
import { socketAddress } from "./messages.ts";
import { httpProxyPort, httpProxyRoute, listenerName } from "../names/resource-names.ts";

/** The explicit proxy that the workload's HTTP_PROXY names. */
export function translateOutboundListener(own: SidecarOwn): Listener {
  const name = listenerName(own.address, httpProxyPort);
  return create(ListenerSchema, {
    name,
    address: socketAddress(own.address, httpProxyPort),
    trafficDirection: TrafficDirection.OUTBOUND,
    filterChains: [{ filters: [outboundConnectionManager(`outbound_${name}`, httpProxyRoute, own)] }],
  });
}

/** The pod's own port: the proxy stands in front of the application, which listens elsewhere. */
export function translateInboundListener(own: SidecarOwn, port: InboundPort): Listener {
  const name = listenerName(own.address, port.targetPort);
  return create(ListenerSchema, {
    name,
    address: socketAddress(own.address, port.targetPort),
    trafficDirection: TrafficDirection.INBOUND,
    accessLog: turnedAwayLogs(own, [port]),
    ...inboundTraffic(own, targetOfPort(port), `inbound_${name}`, port.mutualTls),
  });
}
