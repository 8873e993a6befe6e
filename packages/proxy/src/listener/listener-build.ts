// What the parts of one listener share while they are compiled.
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Problems } from "../fields/problems.ts";
import type { SecretSlot } from "../tls/secret-slot.ts";

export interface RouteSubscription {
  /** How long the listener waits for them; 0 = for ever. */
  readonly timeoutMs: number;
  /** Of the connection manager that asks for them. */
  readonly statPrefix: string;
}

export interface ListenerOptions {
  /** For inline route configurations with `validate_clusters`. */
  readonly clusterExists?: (name: string) => boolean;
}

export interface ListenerBuild {
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly options: ListenerOptions;
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
