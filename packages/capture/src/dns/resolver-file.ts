// resolv.conf of the machine, followed while the agent runs: whoever gives the machine another address, or another name
// server, restarts no program.
import { readFileSync, type Stats, statSync } from "node:fs";
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import { type Forwarding, isSameServer, type NameServer } from "./forwarder.ts";
import { readResolverSettings, type ResolverSettings } from "./resolver-settings.ts";

export interface ResolverFileOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A question that is asked within it may still go to the servers of before. */
const lookAgainMs = 1000;
/** Far more than the C library reads of it; a longer one is no such file. */
const maxFileBytes = 65_536;

export class ResolverFile {
  readonly #options: ResolverFileOptions;
  /** Without a file, this machine itself is asked, as by the C library. */
  #settings = readResolverSettings("");
  #lookedAtMs: number | undefined;
  /** Which file, and in which state, was read last. */
  #seen: string | undefined;

  constructor(options: ResolverFileOptions) {
    this.#options = options;
  }

  /** As they are now; a file that is gone or cannot be read leaves those that it had. */
  settings(): ResolverSettings {
    const nowMs = this.#options.clock.nowMs();
    if (this.#lookedAtMs === undefined || nowMs - this.#lookedAtMs >= lookAgainMs) {
      this.#lookedAtMs = nowMs;
      this.#look();
    }
    return this.#settings;
  }

  #look(): void {
    const { path, log } = this.#options;
    let state = "";
    try {
      const stats = statSync(path);
      state = stateOf(stats);
      if (state === this.#seen) return;
      this.#settings = readResolverSettings(textOf(path, stats));
      const { servers } = this.#settings;
      log.info("asks the machine's name servers", { servers: servers.join(" ") });
    } catch (error) {
      // Said once for each state of the file.
      const { code = "", message } = error as NodeJS.ErrnoException;
      state ||= code;
      if (state !== this.#seen) log.warning(`${path} says no name servers: ${message}`);
    }
    this.#seen = state;
  }
}

function stateOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

/** Of no pipe or device: reading one may never end. */
function textOf(path: string, stats: Stats): string {
  if (!stats.isFile()) throw new Error("it is no file");
  if (stats.size > maxFileBytes) throw new Error(`it is longer than ${maxFileBytes} bytes`);
  return readFileSync(path, "utf8");
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
