// The agent's SDS server: hands key, chain and roots to the proxy beside it, and pushes new ones to every stream when
// they change. A proxy takes what came last for new connections and lets old ones live on, so that nothing is cut by a
// rotation.
import type { Logger } from "@tulle/telemetry";
import { type AdsConnection, type EncodedResource, serveAds } from "@tulle/xds";
import type { WorkloadIdentity } from "./workload-identity.ts";
import { certificateSecret, encodeSecrets, rootsSecret } from "./secrets.ts";

export interface SecretServerOptions {
  readonly socketPath: string;
  readonly identity: WorkloadIdentity;
  readonly log: Logger;
}

/** Envoy opens a stream for each secret that some listener or cluster names, and a few more while it restarts. */
const maxStreams = 64;

/** Rejects if the socket cannot be bound. Whoever may connect to it gets the key: it is made with mode 0600. */
export async function serveSecrets({ socketPath, identity, log }: SecretServerOptions): Promise<AsyncDisposable> {
  let secrets: ReadonlyMap<string, EncodedResource> = new Map();
  const open = new Set<AdsConnection>();
  const server = await serveAds({
    address: { path: socketPath },
    service: "sds",
    limits: {
      maxStreams,
      // Over a Unix socket a peer that is gone is known to the kernel; one that is stopped is to be waited for.
      keepAliveIntervalMs: 60 * 60_000,
      keepAliveTimeoutMs: 60 * 60_000,
    },
    handlers: {
      onConnect: (connection) => {
        open.add(connection);
        if (secrets.size > 0) connection.set("SDS", secrets);
      },
      onSubscribe: (_connection, { names }) => {
        const unknown = names === "*" ? ["*"] : [...names].filter((name) => !isServed(name));
        // It would wait for ever, and nobody would know for what.
        if (unknown.length > 0)
          log.warning(`the proxy asks for secrets that the agent does not have: ${unknown.join(", ")}`);
      },
      onNack: (_connection, { message }) => log.error(`the proxy refuses a secret: ${message}`),
      onDisconnect: (connection) => void open.delete(connection),
    },
  });
  const stopFollowing = identity.follow((certificate) => {
    secrets = encodeSecrets(certificate);
    for (const connection of open) connection.set("SDS", secrets);
  });
  return {
    [Symbol.asyncDispose]: async () => {
      stopFollowing();
      await server.close();
    },
  };
}

function isServed(name: string): boolean {
  return name === certificateSecret || name === rootsSecret;
}
