// What a forwarding route does with a request. One shape for all of them: the data path reads it for every request.
import type { Cluster } from "../cluster/cluster.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { ForwardAction, RetryPolicy, UpgradeRule } from "../route/route-table.ts";
import type { Slot } from "../runtime/slot.ts";
import type { HeaderChange } from "./compile-header-changes.ts";
import type { Rewrite } from "./compile-rewrite.ts";

type Given = Omit<ForwardAction, "type" | "finalizeRequest" | "finalizeResponse" | "responseIsUntouched"> & {
  readonly requestChanges: readonly HeaderChange[];
  readonly responseChanges: readonly HeaderChange[];
  readonly hostRewrite: Rewrite | undefined;
  readonly pathRewrite: Rewrite | undefined;
};

export class ClusterAction implements ForwardAction {
  readonly type = "forward";
  readonly clusterSlot: Slot<Cluster>;
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number | undefined;
  readonly maxStreamDurationMs: number | undefined;
  readonly retryPolicy: RetryPolicy | undefined;
  readonly clusterNotFoundStatus: number;
  readonly includeRequestAttemptCount: boolean;
  readonly includeAttemptCountInResponse: boolean;
  readonly responseIsUntouched: boolean;
  readonly autoHostRewrite: boolean;
  readonly appendForwardedHost: boolean;
  readonly upgrades: ReadonlyMap<string, UpgradeRule> | undefined;
  readonly #requestChanges: readonly HeaderChange[];
  readonly #responseChanges: readonly HeaderChange[];
  readonly #hostRewrite: Rewrite | undefined;
  readonly #pathRewrite: Rewrite | undefined;

  constructor(given: Given) {
    this.clusterSlot = given.clusterSlot;
    this.timeoutMs = given.timeoutMs;
    this.idleTimeoutMs = given.idleTimeoutMs;
    this.maxStreamDurationMs = given.maxStreamDurationMs;
    this.retryPolicy = given.retryPolicy;
    this.clusterNotFoundStatus = given.clusterNotFoundStatus;
    this.includeRequestAttemptCount = given.includeRequestAttemptCount;
    this.includeAttemptCountInResponse = given.includeAttemptCountInResponse;
    this.responseIsUntouched = given.responseChanges.length === 0;
    this.autoHostRewrite = given.autoHostRewrite;
    this.appendForwardedHost = given.appendForwardedHost;
    this.upgrades = given.upgrades;
    this.#requestChanges = given.requestChanges;
    this.#responseChanges = given.responseChanges;
    this.#hostRewrite = given.hostRewrite;
    this.#pathRewrite = given.pathRewrite;
  }

  finalizeRequest(request: RequestHead, info: StreamInfo): void {
    for (const change of this.#requestChanges) change(request.headers, info, request, undefined);
    this.#hostRewrite?.(request);
    this.#pathRewrite?.(request);
  }

  finalizeResponse(response: ResponseHead, info: StreamInfo): void {
    for (const change of this.#responseChanges) change(response.headers, info, info.request, response);
  }
}
