// Asks somebody else whether a connection may go on (extensions.filters.network.ext_authz.v3.ExtAuthz). Envoy asks at
// the first bytes of the client; here the answer comes before anything else, as with rules.
import type { Logger } from "@tulle/telemetry";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import type { DataPath } from "../../../worker/data-path.ts";
import type { NetworkFilter, Verdict } from "../../../listener/network-filter.ts";
import { noRequest } from "../../../http/message.ts";
import { responseFlags } from "../../../http/response-flags.ts";
import type { AuthorizationOutcome } from "../../http/ext-authz/authorization-outcome.ts";
import type { Authorizer, MetadataTest } from "../../http/ext-authz/ext-authz-config.ts";
import { beginningStreamInfo } from "../connection-stream-info.ts";
import type { NetworkExtAuthzStats } from "./network-ext-authz-stats.ts";

export interface NetworkExtAuthzOptions {
  readonly name: string;
  readonly authorizer: Authorizer;
  readonly failureModeAllow: boolean;
  readonly enabledBy: MetadataTest | undefined;
  readonly metadataNamespaces: readonly string[];
  readonly stats: NetworkExtAuthzStats;
  readonly log: Logger;
}

const metadataNamespace = "envoy.filters.network.ext_authz";

export class NetworkExtAuthzFilter implements NetworkFilter {
  readonly name: string;
  readonly #options: NetworkExtAuthzOptions;

  constructor(options: NetworkExtAuthzOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onNewConnection(
    connection: ConnectionInfo,
    dataPath: DataPath,
    decide: (verdict: Verdict) => void,
  ): Verdict | { readonly cancel: () => void } {
    const { authorizer, enabledBy, metadataNamespaces, stats } = this.#options;
    if (enabledBy !== undefined && !enabledBy(connection.dynamicMetadata)) {
      stats.disabled.increment();
      return "continue";
    }
    stats.total.increment();
    stats.active.add(1);
    const metadata = Object.fromEntries(
      metadataNamespaces.flatMap((name) => {
        const found = connection.dynamicMetadata?.[name];
        return found === undefined ? [] : [[name, found]];
      }),
    );
    const info = beginningStreamInfo(connection, dataPath);
    const check = {
      info,
      dataPath,
      request: noRequest,
      headers: new Map(),
      body: undefined,
      contextExtensions: {},
      metadata,
    };
    const call = authorizer.check(check, (outcome) => {
      stats.active.add(-1);
      decide(this.#verdict(connection, outcome, Math.floor(dataPath.turn.nowMs - info.startMonotonicMs)));
    });
    return {
      cancel: () => {
        stats.active.add(-1);
        call.cancel();
      },
    };
  }

  #verdict(connection: ConnectionInfo, outcome: AuthorizationOutcome, durationMs: number): Verdict {
    const { stats, log, failureModeAllow } = this.#options;
    if (log.debugEnabled) log.debug("external authorization", { connection: connection.id, outcome: outcome.kind });
    if (outcome.kind === "error") {
      stats.error.increment();
      if (failureModeAllow) {
        stats.failureModeAllowed.increment();
        return "continue";
      }
      return this.#close(connection, "ext_authz_error");
    }
    if (outcome.metadata !== undefined) {
      const all = (connection.dynamicMetadata ??= {});
      all[metadataNamespace] = {
        ...all[metadataNamespace],
        ...outcome.metadata,
        ...(outcome.kind === "allowed" && { ext_authz_duration: durationMs }),
      };
    }
    if (outcome.kind === "allowed") {
      stats.ok.increment();
      return "continue";
    }
    stats.denied.increment();
    return this.#close(connection, "ext_authz_denied");
  }

  #close(connection: ConnectionInfo, details: string): Verdict {
    this.#options.stats.closed.increment();
    connection.responseFlags |= responseFlags.UAEX.bit;
    connection.responseCodeDetails = details;
    return "close";
  }
}
