// Holds requests of a stream back that would come too fast: all of them where a bootstrap says so
// (rate_limit_settings), refusals always. A server that answers each refusal with the same bad resource, as those
// without a memory do, would otherwise keep both ends busy for ever.
import type { Clock } from "@tulle/timing";
import type { RateLimit } from "./ads-client-api.ts";
import type { ClientRequest } from "./client-machine.ts";
import type { ResourceTypeName } from "./resource-types.ts";

/** Envoy's, where the settings are given without numbers. */
export const defaultRateLimit: RateLimit = { maxTokens: 100, perSecond: 10 };

export interface RequestPaceOptions<Request extends ClientRequest> {
  readonly clock: Clock;
  /** Of all requests; undefined = those alone that refuse something are held back. */
  readonly limit: RateLimit | undefined;
  readonly send: (request: Request) => void;
  /** One request that says what both say. */
  readonly merge: (earlier: Request, later: Request) => Request;
  /** How many types have a request that waits; `isHeldBack` when one has just begun to. */
  readonly onPending: (pending: number, isHeldBack: boolean) => void;
}

/** Of each type one request waits at most; what comes meanwhile is merged into it. */
export class RequestPace<Request extends ClientRequest> {
  readonly #options: RequestPaceOptions<Request>;
  readonly #limit: RateLimit;
  readonly #waiting = new Map<ResourceTypeName, Request>();
  #tokens: number;
  #filledAtMs: number;
  #cancel: (() => void) | undefined;

  constructor(options: RequestPaceOptions<Request>) {
    this.#options = options;
    this.#limit = options.limit ?? defaultRateLimit;
    this.#tokens = this.#limit.maxTokens;
    this.#filledAtMs = options.clock.nowMs();
  }

  push(request: Request): void {
    const { send, merge, onPending, limit } = this.#options;
    const { shortName } = request.type;
    const before = this.#waiting.get(shortName);
    if (before !== undefined) {
      this.#waiting.set(shortName, merge(before, request));
      return;
    }
    const costs = limit !== undefined || request.error !== undefined;
    // The first request of a stream carries the node: none may overtake it.
    const isBehindFirst = [...this.#waiting.values()].some(({ first }) => first);
    if (!isBehindFirst && (!costs || this.#take())) {
      send(request);
      return;
    }
    this.#waiting.set(shortName, request);
    onPending(this.#waiting.size, true);
    this.#wakeLater();
  }

  /** What waits belongs to a stream that has ended. Tokens stay spent, or reconnecting would be a way around them. */
  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#waiting.size === 0) return;
    this.#waiting.clear();
    this.#options.onPending(0, false);
  }

  #take(): boolean {
    const nowMs = this.#options.clock.nowMs();
    const { maxTokens, perSecond } = this.#limit;
    this.#tokens = Math.min(maxTokens, this.#tokens + ((nowMs - this.#filledAtMs) / 1000) * perSecond);
    this.#filledAtMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  #wakeLater(): void {
    if (this.#cancel !== undefined) return;
    const waitMs = Math.max(1, Math.ceil(((1 - this.#tokens) / this.#limit.perSecond) * 1000));
    this.#cancel = this.#options.clock.after(waitMs, () => {
      this.#cancel = undefined;
      for (const [type, request] of this.#waiting) {
        if (!this.#take()) break;
        this.#waiting.delete(type);
        this.#options.send(request);
      }
      this.#options.onPending(this.#waiting.size, false);
      if (this.#waiting.size > 0) this.#wakeLater();
    });
  }
}
