// resolv.conf of the machine, followed while the agent runs: whoever gives the machine another address, or another name
// server, restarts no program.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import { FollowedFile } from "./followed-file.ts";
import { type Forwarding, isSameServer, type NameServer } from "./forwarder.ts";
import { maxResolverFileBytes, readResolverSettings, type ResolverSettings } from "./resolver-settings.ts";

export interface ResolverFileOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export class ResolverFile {
  readonly #file: FollowedFile<ResolverSettings>;

  constructor({ path, clock, log }: ResolverFileOptions) {
    this.#file = new FollowedFile({
      path,
      clock,
      read: readResolverSettings,
      // Without a file, this machine itself is asked, as by the C library.
      initial: readResolverSettings(""),
      maxBytes: maxResolverFileBytes,
      onRead: ({ servers }) => log.info("asks the machine's name servers", { servers: servers.join(" ") }),
      onFailure: (reason) => log.warning(`${path} says no name servers: ${reason}`),
    });
  }

  /** As they were within the last second; a file that is gone or cannot be read leaves those that it had. */
  settings(): ResolverSettings {
    return this.#file.content();
  }
}

const dnsPort = 53;

/** Without the server itself that asks: what it asks would come back to it. */
export function forwardingOf(
  { servers, timeoutMs, attempts }: ResolverSettings,
  own: readonly NameServer[],
): Forwarding {
  const others = servers
    .map((address) => ({ address, port: dnsPort }))
    .filter((server) => !own.some((each) => isSameServer(each, server)));
  return { servers: others, timeoutMs, attempts };
}
