// The ADS server: for each stream that arrives, a state machine of the variant that its client speaks.
import { randomBytes } from "node:crypto";
import { systemClock } from "@tulle/timing";
import type { AdsConnection, AdsServerLimits, AdsServerOptions, RunningAdsServer } from "./ads-server-api.ts";
import { AdsServerConnection } from "./ads-server-connection.ts";
import { type OnByteStream, serveByteStreams } from "./byte-stream-server.ts";
import type { ServerRequest, ServerResponse, ServerVariant } from "./server-machine.ts";
import { sotwServer } from "./sotw/variant.ts";

export const defaultAdsServerLimits: AdsServerLimits = {
  maxStreams: 10_000,
  maxHandshakes: 1024,
  maxUnproven: 256,
  firstRequestTimeoutMs: 10_000,
  // Kubernetes allows a pod 256 KiB of annotations, and Istio's agents put them into the node.
  maxNodeBytes: 512 * 1024,
  maxNameCharacters: 1024,
  maxSpareNames: 4096,
  maxRequestBytes: 4 * 1024 * 1024,
  maxResponseBytes: 64 * 1024 * 1024,
  maxOutstandingResponses: 32,
  ackTimeoutMs: 30_000,
  dependencyTimeoutMs: 5_000,
  removalTimeoutMs: 10_000,
  keepAliveIntervalMs: 60_000,
  keepAliveTimeoutMs: 15 * 60_000,
};

let lastId = 0;

/** Starts to serve; rejects if the address cannot be bound. */
export async function serveAds(options: AdsServerOptions): Promise<RunningAdsServer> {
  const limits = { ...defaultAdsServerLimits, ...options.limits };
  const open = new Set<AdsConnection & { readonly isConnected: boolean }>();
  // Distinct between servers too, so that an answer to a predecessor is not taken for one to this server.
  const serverId = randomBytes(4).toString("hex");
  const { address, service = "ads", tls, unaryHandlers, secretHandlers, refusesConnection } = options;
  const { admission, onTurnedAway } = options;
  const speaks =
    <Request extends ServerRequest, Response extends ServerResponse>(
      variant: ServerVariant<Request, Response>,
    ): OnByteStream =>
    (stream) => {
      lastId += 1;
      const connection = new AdsServerConnection({
        variant,
        id: lastId,
        noncePrefix: `${serverId}-${lastId}-`,
        refusal: options.refusal,
        onTurnedAway,
        handlers: stream.service === service ? options.handlers : secretHandlers!,
        limits,
        controlPlaneId: options.controlPlaneId ?? "",
        clock: options.clock ?? systemClock,
        stream,
      });
      open.add(connection);
      return {
        onMessage: (bytes) => connection.received(bytes),
        onDrain: () => connection.drained(),
        onEnd: (reason) => {
          open.delete(connection);
          connection.closed(reason);
        },
      };
    };
  const server = await serveByteStreams({
    address,
    limits,
    services: secretHandlers === undefined ? [service] : [service, "sds"],
    ...(tls === undefined ? {} : { tls }),
    ...(refusesConnection === undefined ? {} : { refusesConnection }),
    ...(unaryHandlers === undefined ? {} : { unaryHandlers }),
    ...(admission === undefined ? {} : { admission }),
    ...(onTurnedAway === undefined ? {} : { onTurnedAway }),
    onStream: { sotw: speaks(sotwServer) },
  });
  return {
    address: server.address,
    get connections() {
      return [...open].filter((connection) => connection.isConnected);
    },
    setCredentials: (credentials) => server.setCredentials(credentials),
    close: () => server.close(),
  };
}
