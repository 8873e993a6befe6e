// What a network filter's folder gives to the table of network filters: how its configuration becomes a link of a
// filter chain.
import type { ListenerBuild } from "../../listener/listener-build.ts";
import type { Place } from "../../fields/problems.ts";
import type { TypedConfig } from "../../fields/typed-config.ts";
import type { NetworkFilter, TerminalNetworkFilter } from "../../listener/network-filter.ts";

export interface NetworkFilterBuild {
  /** The name in the filter chain's list. */
  readonly name: string;
  readonly listener: ListenerBuild;
  readonly place: Place;
}

/** `types`: type URLs of `typed_config`, without `type.googleapis.com/`. `compile` gives undefined after an error. */
export type NetworkFilterRegistration =
  | {
      readonly types: readonly string[];
      readonly isTerminal: false;
      compile(config: TypedConfig, build: NetworkFilterBuild): NetworkFilter | undefined;
    }
  | {
      /** A terminal filter stands last and takes the connection. */
      readonly types: readonly string[];
      readonly isTerminal: true;
      compile(config: TypedConfig, build: NetworkFilterBuild): TerminalNetworkFilter | undefined;
    };
