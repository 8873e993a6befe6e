// Where the routes of a table come from: a message that stands in its listener, or the bytes of an RDS resource, which
// are decoded one route at a time, if at all, so that what a route was decoded to is garbage before the next one comes.
import { fromBinary } from "@bufbuild/protobuf";
import { resourceName, splitList } from "@tulle/xds";
import { type RouteConfiguration, RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  type Route,
  RouteSchema,
  type VirtualHost,
  VirtualHostSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";

export interface RouteSource {
  /** Without its virtual hosts. */
  readonly message: RouteConfiguration;
  /** The same as it came. */
  readonly encoded: Uint8Array | undefined;
  readonly virtualHosts: readonly VirtualHostSource[];
}

export interface VirtualHostSource {
  /** With its routes; by it the next version of the table knows what has not changed. */
  readonly encoded: Uint8Array | undefined;
  /** Known before anything is decoded. */
  readonly name: string;
  open(): OpenVirtualHost;
}

export interface OpenVirtualHost {
  /** Without its routes. */
  message(): VirtualHost;
  readonly routeCount: number;
  route(index: number): Route;
  /** The same as they came; undefined where `VirtualHostSource.encoded` is. */
  readonly encoded: EncodedParts | undefined;
}

export interface EncodedParts {
  readonly rest: Uint8Array;
  readonly routes: readonly Uint8Array[];
}

export function decodedSource(message: RouteConfiguration): RouteSource {
  return {
    message: { ...message, virtualHosts: [] },
    encoded: undefined,
    virtualHosts: message.virtualHosts.map((host) => ({
      encoded: undefined,
      name: host.name,
      open: () => ({
        message: () => ({ ...host, routes: [] }),
        routeCount: host.routes.length,
        route: (index) => host.routes[index]!,
        encoded: undefined,
      }),
    })),
  };
}

/** The bytes are no RouteConfiguration. */
export class UndecodableError extends Error {}

function decode<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new UndecodableError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** @throws {UndecodableError} here and from what it returns */
export function encodedSource(bytes: Uint8Array): RouteSource {
  const { rest, elements } = decode(() => splitList(bytes, RouteConfigurationSchema.field.virtualHosts.number));
  return {
    message: decode(() => fromBinary(RouteConfigurationSchema, rest)),
    encoded: rest,
    virtualHosts: elements.map((element) => new EncodedVirtualHost(element)),
  };
}

class EncodedVirtualHost implements VirtualHostSource {
  readonly encoded: Uint8Array;

  constructor(encoded: Uint8Array) {
    this.encoded = encoded;
  }

  get name(): string {
    return resourceName(this.encoded);
  }

  open(): OpenVirtualHost {
    const { rest, elements } = decode(() => splitList(this.encoded, VirtualHostSchema.field.routes.number));
    return {
      message: () => decode(() => fromBinary(VirtualHostSchema, rest)),
      routeCount: elements.length,
      route: (index) => decode(() => fromBinary(RouteSchema, elements[index]!)),
      encoded: { rest, routes: elements },
    };
  }
}
