// At which listeners clients wait for the server to speak first (MySQL, SMTP): who has been waited for in vain once is
// not waited for again. Envoy waits for each connection anew.
import type { ConnectionInfo, FirstWord } from "./connection-info.ts";
import type { Listener } from "./listener.ts";

/** Clients that one listener remembers. */
const maxRemembered = 1024;

/** Where a listener knows clients of the mesh by their TLS, those speak at once, and later only where CPU is short. */
const knownSilenceMs = 100;

export type ServedClient = Pick<ConnectionInfo, "remoteIp" | "localAddress" | "isDestinationRestored">;

/** What one listener remembers. */
export class ServerFirst {
  readonly #clients = new Set<string>();

  /** How long that client is still waited for; undefined = nothing is known of it. */
  waitMs(listener: Listener, connection: ServedClient): number | undefined {
    if (!listener.continuesAfterListenerFiltersTimeout || !this.#clients.has(clientOf(listener, connection))) {
      return undefined;
    }
    return tellsTls(listener) ? knownSilenceMs : 0;
  }

  /**
   * Silence alone proves nothing, or whoever opens connections and says nothing could turn an HTTP port into one that
   * nobody looks into: the server has to speak first.
   */
  firstWord(listener: Listener, connection: ServedClient): FirstWord {
    const client = clientOf(listener, connection);
    return {
      ofClient: () => void this.#clients.delete(client),
      ofServer: (chunk) => {
        if (this.#clients.has(client) || mayBeHttp(chunk)) return;
        if (this.#clients.size >= maxRemembered) this.#clients.delete(this.#clients.values().next().value!);
        this.#clients.add(client);
      },
    };
  }
}

/**
 * Of a port that also takes the mesh's TLS, whose clients speak first, no client says anything of the others. A
 * listener of redirected connections has many servers: none says anything of the others.
 */
function clientOf(listener: Listener, connection: ServedClient): string {
  const { remoteIp, localAddress, isDestinationRestored } = connection;
  const client = tellsTls(listener) ? remoteIp : "anyone";
  return isDestinationRestored ? `${client} ${localAddress}` : client;
}

function tellsTls({ filterChains }: Listener): boolean {
  return filterChains.some(({ transport }) => transport.type === "tls");
}

/** The 408 of a server whose patience has ended, and the SETTINGS frame of one that speaks HTTP/2 (RFC 9113 §3.4). */
function mayBeHttp(chunk: Buffer): boolean {
  return "HTTP/".startsWith(chunk.toString("latin1", 0, 5)) || (chunk[0] === 0 && chunk[3] === 4);
}
