// Leads one stream through its filters: who comes next, who has stopped the request and what waits behind him, and
// which filters the route has switched on (Envoy: `FilterManager`).
import type { HttpStream } from "../http/filter.ts";
import type { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import type { HttpFilterChain, PlacedFilter } from "./filter-chain.ts";
import { HeldRequest } from "./held-request.ts";

/** The stream that filters see, and whether it has ended under the hands of one. */
export interface FilteredStream extends HttpStream {
  readonly isOver: boolean;
}

export class FilterRunner {
  readonly #stream: FilteredStream;
  readonly #chain: HttpFilterChain;
  #headEndsRequest = false;
  #requestEnded = false;
  /** Of those that are asked about request heads: so many have been. */
  #next = 0;
  /** Who has stopped the request. */
  #holder: PlacedFilter | undefined = undefined;
  #held: HeldRequest | undefined = undefined;
  /** Who has stopped the response's head. */
  #responseHolder: PlacedFilter | undefined = undefined;
  /** By index, of filters that routes switch on: whether this stream's has. */
  #enabled: boolean[] | undefined = undefined;

  constructor(stream: FilteredStream, chain: HttpFilterChain) {
    this.#stream = stream;
    this.#chain = chain;
  }

  requestHead(endStream: boolean): void {
    this.#headEndsRequest = endStream;
    this.#requestEnded = endStream;
    this.#passHead();
  }

  requestData(chunk: Buffer, endStream: boolean): void {
    this.#requestEnded = endStream;
    if (this.#holder === undefined) {
      this.#passData(chunk, endStream);
      return;
    }
    const held = this.#hold();
    held.keepData(chunk);
    this.#tellHolder(endStream);
    if (this.#holder !== undefined) held.pauseClientAbove(this.#stream.bufferLimitBytes);
  }

  requestTrailers(trailers: HeaderMap): void {
    this.#requestEnded = true;
    if (this.#holder === undefined) {
      this.#passTrailers(trailers);
      return;
    }
    this.#hold().keepTrailers(trailers);
    this.#tellHolder(true);
  }

  /** The holder lets the request go on. */
  continueRequest(): void {
    if (this.#holder === undefined) return;
    this.#holder = undefined;
    this.#passHead();
    if (this.#holder === undefined && !this.#stream.isOver) this.#passHeld();
  }

  /** The request is not read to its end for an answer that does not depend on it; nor may a filter go on with it. */
  dropRequest(): void {
    this.#holder = undefined;
    this.#next = this.#chain.requestHead.length;
  }

  /** False: a filter has answered in the response's place, or has stopped it. */
  responseHead(response: ResponseHead, endStream: boolean): boolean {
    this.#responseHolder = undefined;
    return this.#passResponseHead(response, endStream, this.#chain.all.length);
  }

  get holdsResponse(): boolean {
    return this.#responseHolder !== undefined;
  }

  /** The head goes on from who has stopped it, and ends the response. */
  continueResponseHead(response: ResponseHead): boolean {
    const before = this.#responseHolder!.index;
    this.#responseHolder = undefined;
    return this.#passResponseHead(response, true, before);
  }

  /** What of the chunk goes to the client. */
  responseData(chunk: Buffer, endStream: boolean): Buffer {
    return this.#passResponseData(chunk, endStream, this.#chain.all.length);
  }

  /** What ends the body in the trailers' place, if a filter puts something there. */
  responseTrailers(trailers: HeaderMap): Buffer | undefined {
    for (const placed of this.#chain.responseTrailers) {
      if (this.#isOff(placed)) continue;
      const end = placed.filter.onResponseTrailers!(this.#stream, trailers);
      if (end !== undefined) return this.#passResponseData(end, true, placed.index);
      if (placed === this.#responseHolder) return undefined;
    }
    return undefined;
  }

  downstreamDrained(): void {
    for (const placed of this.#chain.downstreamDrained) {
      if (!this.#isOff(placed)) placed.filter.onDownstreamDrained!(this.#stream);
    }
  }

  complete(): void {
    for (const placed of this.#chain.complete) {
      if (!this.#isOff(placed)) placed.filter.onComplete!(this.#stream);
    }
  }

  get waitingBody(): readonly Buffer[] {
    return this.#held?.chunks ?? [];
  }

  get waitingBytes(): number {
    return this.#held?.bytes ?? 0;
  }

  raiseWaitingLimit(bytes: number): void {
    this.#hold().raiseLimit(bytes);
  }

  #passHead(): void {
    const stream = this.#stream;
    const { requestHead, all } = this.#chain;
    while (this.#next < requestHead.length) {
      const placed = requestHead[this.#next]!;
      this.#next += 1;
      if (placed.enablementKey !== undefined && !this.#enables(placed, placed.enablementKey)) continue;
      const status = placed.filter.onRequestHead?.(stream, this.#headEndsRequest);
      if (stream.isOver) return;
      // The last one forwards the request or answers it.
      if (status === "stop" && placed.index < all.length - 1) {
        this.#holder = placed;
        return;
      }
    }
  }

  /** Asked once, about the route of that moment: what happens to it later changes nothing, as in Envoy. */
  #enables({ index }: PlacedFilter, key: string): boolean {
    if (this.#stream.routeMatch?.route.perFilterConfig.get(key) !== true) return false;
    (this.#enabled ??= [])[index] = true;
    return true;
  }

  #isOff({ index, enablementKey }: PlacedFilter): boolean {
    return enablementKey !== undefined && this.#enabled?.[index] !== true;
  }

  #passHeld(): void {
    const held = this.#held;
    const chunks = held?.release();
    if (held === undefined || chunks === undefined) return;
    const { trailers } = held;
    for (const [index, chunk] of chunks.entries()) {
      if (this.#stream.isOver) return;
      const isLast = index === chunks.length - 1;
      this.#passData(chunk, isLast && this.#requestEnded && trailers === undefined);
    }
    if (trailers !== undefined) this.#passTrailers(trailers);
  }

  /** By those who stand before the index; a response passes the last filter first. */
  #passResponseHead(response: ResponseHead, endStream: boolean, before: number): boolean {
    const stream = this.#stream;
    for (const placed of this.#chain.responseHead) {
      if (placed.index >= before || this.#isOff(placed)) continue;
      const status = placed.filter.onResponseHead!(stream, response, endStream);
      if (stream.responseStarted) return false;
      if (status === "stop") {
        this.#responseHolder = placed;
        return false;
      }
    }
    return true;
  }

  #passResponseData(chunk: Buffer, endStream: boolean, before: number): Buffer {
    let passed = chunk;
    for (const placed of this.#chain.responseData) {
      if (placed.index >= before || this.#isOff(placed)) continue;
      passed = placed.filter.onResponseData!(this.#stream, passed, endStream) ?? passed;
      if (placed === this.#responseHolder) break;
    }
    return passed;
  }

  #hold(): HeldRequest {
    return (this.#held ??= new HeldRequest(this.#stream));
  }

  #tellHolder(endStream: boolean): void {
    this.#holder?.filter.onRequestWaiting?.(this.#stream, endStream);
  }

  #passData(chunk: Buffer, endStream: boolean): void {
    let passed = chunk;
    for (const placed of this.#chain.requestData) {
      if (this.#isOff(placed)) continue;
      passed = placed.filter.onRequestData!(this.#stream, passed, endStream) ?? passed;
      if (this.#stream.isOver || (passed.length === 0 && !endStream)) return;
    }
  }

  #passTrailers(trailers: HeaderMap): void {
    for (const placed of this.#chain.requestTrailers) {
      if (this.#isOff(placed)) continue;
      placed.filter.onRequestTrailers!(this.#stream, trailers);
      if (this.#stream.isOver) return;
    }
  }
}
