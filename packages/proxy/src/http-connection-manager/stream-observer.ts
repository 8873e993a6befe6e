// Who is told of every stream without having a say in it: statistics, access logs and spans. Filters change requests,
// observers only look.
import type { ResponseHead } from "../http/message.ts";
import type { ResponseFlag } from "../http/response-flags.ts";
import type { DataPath } from "../worker/data-path.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** How a try ended. */
export interface TryEnd {
  /** 0 = no response had come. */
  readonly status: number;
  readonly flag: ResponseFlag | undefined;
  /** What of the transport went wrong. */
  readonly reason: string | undefined;
  /** We gave it up. */
  readonly isCanceled: boolean;
  readonly isRetried: boolean;
}

/** Hooks are called once each, those of tries once a try. They must not throw. */
export interface StreamObserver {
  /** It has begun; of the client's connection all is known, of the request nothing. */
  onStart?(info: StreamInfo, dataPath: DataPath): void;
  /** Before the filters: `info.route` is the request's, undefined = none fits. Filters may still change both. */
  onRoute?(info: StreamInfo): void;
  /**
   * The request is about to go to `info.upstreamHost`, for the time that `info.attemptCount` says; its headers may
   * still be set.
   */
  onTry?(info: StreamInfo): void;
  /** That try has ended without an answer for the client: another follows, or an answer of our own. */
  onTryEnd?(info: StreamInfo, end: TryEnd): void;
  /** The head, `info.response`, is about to go to the client; its headers may still be set. */
  onResponse?(info: StreamInfo, response: ResponseHead): void;
  /** It has ended in whatever way; `info` is complete. */
  onEnd?(info: StreamInfo): void;
}

type ObserverOf<Hook extends keyof StreamObserver> = StreamObserver & Required<Pick<StreamObserver, Hook>>;

/** The observers of a connection manager, by hook: most have one or two. */
export class StreamObservers {
  readonly start: readonly ObserverOf<"onStart">[];
  readonly route: readonly ObserverOf<"onRoute">[];
  readonly try: readonly ObserverOf<"onTry">[];
  readonly tryEnd: readonly ObserverOf<"onTryEnd">[];
  readonly response: readonly ObserverOf<"onResponse">[];
  readonly end: readonly ObserverOf<"onEnd">[];

  constructor(observers: readonly StreamObserver[]) {
    this.start = having(observers, "onStart");
    this.route = having(observers, "onRoute");
    this.try = having(observers, "onTry");
    this.tryEnd = having(observers, "onTryEnd");
    this.response = having(observers, "onResponse");
    this.end = having(observers, "onEnd");
  }
}

function having<Hook extends keyof StreamObserver>(
  observers: readonly StreamObserver[],
  hook: Hook,
): readonly ObserverOf<Hook>[] {
  return observers.filter((observer): observer is ObserverOf<Hook> => observer[hook] !== undefined);
}
