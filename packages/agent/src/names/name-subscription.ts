// The agent's own subscription on its proxy's stream: names of the mesh for the DNS server (Istio: NDS). Responses of
// that type are taken out of the stream; the proxy has not asked for them.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Logger } from "@tulle/telemetry";
import { resourceType, responseTypeUrl, decodeResponse } from "@tulle/xds";
import type { NameEntry } from "@tulle/capture/dns";
import { DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";
import { StatusSchema } from "@tulle/xds/google/rpc/status_pb";
import { type NameTable, NameTableSchema } from "@tulle/xds/istio/networking/nds/v1/nds_pb";

const { typeUrl } = resourceType("NDS");
const invalidArgument = 3;

export interface NameSubscriptionOptions {
  readonly onNames: (entries: readonly NameEntry[]) => void;
  readonly log: Logger;
}

export class NameSubscription {
  readonly #options: NameSubscriptionOptions;

  constructor(options: NameSubscriptionOptions) {
    this.#options = options;
  }

  /** The first request of a stream for this type; the stream has told its node before. */
  request(): Uint8Array {
    return toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl }));
  }

  /** The answer to a response of this type; undefined for one of another, which is the proxy's. */
  take(bytes: Uint8Array): Uint8Array | undefined {
    if (responseTypeUrl(bytes) !== typeUrl) return undefined;
    const { versionInfo, nonce, resources } = decodeResponse(bytes);
    const answer = create(DiscoveryRequestSchema, { typeUrl, versionInfo, responseNonce: nonce });
    try {
      const entries = resources.flatMap(({ value }) => entriesOf(fromBinary(NameTableSchema, value)));
      this.#options.onNames(entries);
      this.#options.log.debug("names of the mesh", { hosts: entries.length });
    } catch (error) {
      const message = `not a table of names: ${(error as Error).message}`;
      this.#options.log.warning(message);
      answer.errorDetail = create(StatusSchema, { code: invalidArgument, message });
      answer.versionInfo = "";
    }
    return toBinary(DiscoveryRequestSchema, answer);
  }
}

function entriesOf({ table }: NameTable): readonly NameEntry[] {
  return Object.entries(table).map(([hostname, { ips, registry, shortname, ports, targets }]) => ({
    hostname,
    addresses: ips,
    isKubernetes: registry === "Kubernetes" && shortname !== "",
    ports: ports.map(({ name, number, isUdp }) => ({ name, port: number, protocol: isUdp ? "udp" : "tcp" })),
    targets,
  }));
}
