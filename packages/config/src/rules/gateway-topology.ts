/**
 * `gatewayTopology` of the mesh's `defaultConfig` and of a pod's `proxy.istio.io/config` (Istio: ProxyConfig): what
 * stands between clients and a gateway.
 */
import { type Infer, integer, object, optional } from "../schema/schema.ts";

export const gatewayTopology = object(
  {
    numTrustedProxies: optional(
      integer({ minimum: 0, maximum: 100 }),
      "Proxies before the gateway whose entries of X-Forwarded-For are believed; none when missing.",
    ),
    proxyProtocol: optional(
      object({}),
      "Each connection begins with a header of the PROXY protocol, version 1 or 2; one without is closed.",
    ),
  },
  { unread: ["forwardClientCertDetails"] },
);

export type GatewayTopology = Infer<typeof gatewayTopology>;
