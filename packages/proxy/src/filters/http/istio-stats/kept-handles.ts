// Handles of metrics kept where the next request finds them, and the one map for all that there was no room for.
import type { Counter, Histogram } from "@tulle/telemetry";
import { ownText } from "../../../http/own-text.ts";
import type { CustomHandle } from "./metric-overrides.ts";

/** Host headers told apart, where a cluster names no service. */
const maxAuthorities = 256;

/** Undefined are metrics that are not kept. */
export interface Handles {
  readonly requests: Counter | undefined;
  readonly durationMs: Histogram | undefined;
  readonly requestBytes: Histogram | undefined;
  readonly responseBytes: Histogram | undefined;
  readonly custom: readonly CustomHandle[] | undefined;
}

/** Of gRPC, by who speaks to whom alone, as Istio counts them. */
export interface MessageHandles {
  readonly request: Counter | undefined;
  readonly response: Counter | undefined;
}

/**
 * Who speaks to whom: handles by flags, response code and gRPC status, as one number, with the values of expressions
 * behind it where there are some; those of messages by these values alone.
 */
export interface Pair {
  readonly outcomes: Map<number | string, Handles>;
  readonly messages: Map<string, MessageHandles>;
}

/** Maps that stand for all the keys for which there was no more room. */
export const overflow = new WeakSet<Pair>();
export const overflowKey = "\0";

/** The map under `key`, made when it is new; when there are too many, requests share one. */
export function at(map: Map<string, Pair>, key: string): Pair {
  const kept = map.get(key);
  if (kept !== undefined) return kept;
  if (map.size >= maxAuthorities && key !== overflowKey) return at(map, overflowKey);
  const made: Pair = { outcomes: new Map(), messages: new Map() };
  if (key === overflowKey) overflow.add(made);
  map.set(ownText(key), made);
  return made;
}
