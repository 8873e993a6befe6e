// What the parts of one listener share while they are compiled.
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Problems } from "../fields/problems.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";
import type { FilterChain } from "./listener.ts";

export interface RouteSubscription {
  /** How long the listener waits for them; 0 = for ever. */
  readonly timeoutMs: number;
  /** Of the connection manager that asks for them. */
  readonly statPrefix: string;
}

/** A chain, and what it has added to its listener's lists. */
export interface CompiledChain extends Pick<ListenerBuild, "routes" | "clusterNames" | "secretSlots"> {
  readonly chain: FilterChain;
}

/** What a listener leaves to the one that takes its place. */
export interface CompiledChains {
  /** Of all that is no filter chain: each chain may have been made by it. */
  readonly frame: string;
  /** By what each chain says. */
  readonly byText: ReadonlyMap<string, CompiledChain>;
}

export interface ListenerOptions {
  /** For inline route configurations with `validate_clusters`. */
  readonly clusterExists?: (name: string) => boolean;
  /** Of the listener whose place it takes. */
  readonly former?: CompiledChains | undefined;
}

export interface ListenerBuild {
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly options: ListenerOptions;
  /** Connections come with the addresses that they were aimed at (Listener.transparent). */
  readonly isTransparent: boolean;
  /** traffic_direction is INBOUND. */
  readonly isInbound: boolean;
  /** It is OUTBOUND. */
  readonly isOutbound: boolean;
  /** Of the listener in the tree of statistics. */
  readonly statName: string;
  readonly routes: Map<string, RouteSubscription>;
  readonly clusterNames: Set<string>;
  readonly secretSlots: Set<SecretSlot>;
}
