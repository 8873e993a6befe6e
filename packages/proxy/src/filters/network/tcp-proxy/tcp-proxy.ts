// The TCP proxy as the last filter of a chain: what a listener gives connections to whose bytes are passed on as they
// are.
import type { DownstreamConnection, DownstreamConnectionOptions } from "../../../listener/downstream-connection.ts";
import type { TerminalNetworkFilter, UnopenedConnection, UnopenedEnd } from "../../../listener/network-filter.ts";
import { TcpProxyConnection } from "./tcp-proxy-connection.ts";
import type { TcpProxySettings } from "./tcp-proxy-settings.ts";
import { accountRefused } from "./tcp-session-account.ts";

export class TcpProxy implements TerminalNetworkFilter {
  readonly #settings: TcpProxySettings;

  constructor(settings: TcpProxySettings) {
    this.#settings = settings;
  }

  open(options: DownstreamConnectionOptions): DownstreamConnection {
    return new TcpProxyConnection(this.#settings, options);
  }

  // What a network filter closes counts and is logged all the same.
  onUnopened(end: UnopenedEnd, connection: UnopenedConnection): void {
    if (end === "closed_by_filter") accountRefused(this.#settings, connection);
  }
}
