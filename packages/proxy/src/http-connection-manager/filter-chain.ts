// The HTTP filters of a connection manager in their order, and for each hook those that have it: a stream asks nobody
// who has nothing to say.
import type { HttpFilter } from "../http/filter.ts";

/** A filter at its place in the chain. */
export interface PlacedFilter {
  readonly filter: HttpFilter;
  readonly index: number;
  /** It works where configurations of the route have this key; undefined = everywhere (`HttpFilter.disabled`). */
  readonly enablementKey: string | undefined;
}

type Hook = Exclude<keyof HttpFilter, "name">;
type FilterOfChain = Omit<PlacedFilter, "index">;

export class HttpFilterChain {
  readonly all: readonly PlacedFilter[];
  readonly requestHead: readonly PlacedFilter[];
  readonly requestData: readonly PlacedFilter[];
  readonly requestTrailers: readonly PlacedFilter[];
  /** These three in the order in which a response passes: the last filter first. */
  readonly responseHead: readonly PlacedFilter[];
  readonly responseData: readonly PlacedFilter[];
  readonly responseTrailers: readonly PlacedFilter[];
  readonly downstreamDrained: readonly PlacedFilter[];
  readonly complete: readonly PlacedFilter[];

  constructor(filters: readonly FilterOfChain[]) {
    this.all = filters.map(({ filter, enablementKey }, index) => ({ filter, index, enablementKey }));
    // Those that routes switch on are asked for that with the head.
    this.requestHead = this.all.filter(
      ({ filter, enablementKey }) => filter.onRequestHead !== undefined || enablementKey !== undefined,
    );
    this.requestData = this.#withHook("onRequestData");
    this.requestTrailers = this.#withHook("onRequestTrailers");
    this.responseHead = this.#withHook("onResponseHead").toReversed();
    this.responseData = this.#withHook("onResponseData").toReversed();
    this.responseTrailers = this.#withHook("onResponseTrailers").toReversed();
    this.downstreamDrained = this.#withHook("onDownstreamDrained");
    this.complete = this.#withHook("onComplete");
  }

  #withHook(hook: Hook): readonly PlacedFilter[] {
    return this.all.filter(({ filter }) => filter[hook] !== undefined);
  }
}
