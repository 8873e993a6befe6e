// Every listener filter that the proxy knows. Connections pass them in the order of the listener's own list; this table
// only says which types exist.
import { typeUrlPrefix } from "../../fields/typed-config.ts";
import { httpInspectorRegistration } from "./http-inspector/http-inspector.ts";
import type { ListenerFilterRegistration } from "./listener-filter.ts";
import { originalDstRegistration } from "./original-dst/original-dst.ts";
import { originalSrcRegistration } from "./original-src/original-src.ts";
import { proxyProtocolRegistration } from "./proxy-protocol/proxy-protocol.ts";
import { tlsInspectorRegistration } from "./tls-inspector/tls-inspector.ts";

export const listenerFilters: readonly ListenerFilterRegistration[] = [
  proxyProtocolRegistration,
  tlsInspectorRegistration,
  httpInspectorRegistration,
  originalDstRegistration,
  originalSrcRegistration,
];

const byType = new Map(listenerFilters.flatMap((filter) => filter.types.map((type) => [typeUrlPrefix + type, filter])));

export function listenerFilterOfType(typeUrl: string): ListenerFilterRegistration | undefined {
  return byType.get(typeUrl);
}
