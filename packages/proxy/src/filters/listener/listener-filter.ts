// The surface of listener filters: they look at a connection and its first bytes, before its filter chain is chosen,
// and leave what they found in its `ConnectionInfo` (Envoy: `Network::ListenerFilter`).
import type { MetricRegistry } from "@tulle/telemetry";
import type { TypedConfig } from "../../fields/typed-config.ts";
import type { Place, Problems } from "../../fields/problems.ts";
import type { ConnectionInfo } from "../../listener/connection-info.ts";

/**
 * - `continue`: it knows what it wanted to know, or that it never will.
 * - `wait`: more bytes are needed.
 * - `close`: the connection ends.
 * - a number: it knows; so many bytes at the beginning were for it alone, and nobody else sees them.
 */
export type InspectionStatus = "continue" | "wait" | "close" | number;

export interface ListenerFilter {
  readonly name: string;
  /** Has nothing to ask of this connection: filter_disabled, or what a filter before it found. */
  isSkipped(connection: ConnectionInfo): boolean;
  /** Asks the kernel about the connection's descriptor, and needs no bytes; undefined for filters that read. */
  readonly onAccept: ((connection: ConnectionInfo, descriptor: number) => void) | undefined;
  /** For one connection; undefined for filters with `onAccept`. */
  readonly inspector: ((connection: ConnectionInfo) => Inspector) | undefined;
}

/**
 * Asked with each piece that comes: `data` is all that has come, from the first byte, at least one. What it has looked
 * at it does not look at again, or a client that sends byte by byte would cost the square of what it sends.
 */
export type Inspector = (data: Buffer) => InspectionStatus;

export interface ListenerFilterBuild {
  readonly name: string;
  readonly metrics: MetricRegistry;
  /** The listener takes connections to other addresses than its own, whose sockets have those. */
  readonly isTransparent: boolean;
  readonly place: Place;
  readonly problems: Problems;
}

export interface ListenerFilterRegistration {
  /** Type URLs of `typed_config`, without `type.googleapis.com/`. */
  readonly types: readonly string[];
  /** Undefined after an error. */
  compile(config: TypedConfig, build: ListenerFilterBuild): ListenerFilter | undefined;
}
