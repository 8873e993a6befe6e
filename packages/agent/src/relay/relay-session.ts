// One ADS stream of a proxy, relayed. What the proxy and the control plane say passes as it is, nonces included; the
// conversation remembers what the proxy asks for and has accepted, and the session has it step in while there is no
// control plane.
//
// The session is in one of these states: connecting  a stream to the control plane is being opened     → `live` by its
// opening, `offline` by its failing live        requests and responses pass                       → `offline` by the
// stream's end, `connecting` by `renew` offline     back-off runs; what the proxy asks for and was not answered comes
// from the saved state            → `connecting` by time closed      the proxy has gone A request that nobody has
// answered for `graceMs` is answered from the saved state in any of them, and those after it at once, until the control
// plane says something: one that accepts connections and is silent must not hold up a start.
import { type BackOffLimits, type Clock, backOffMs } from "@tulle/timing";
import type { ByteStream, ByteStreamEvents, CallOnStream, UnaryAnswer } from "@tulle/xds";
import type { Conversation } from "./conversation.ts";

export type RelaySessionState = "connecting" | "live" | "offline" | "closed";

export interface RelaySessionOptions {
  /** Writes to the proxy; false when it should be given no more for now. */
  readonly toProxy: (bytes: Uint8Array) => boolean;
  readonly openUpstream: (events: ByteStreamEvents) => ByteStream;
  readonly conversation: Conversation;
  readonly clock: Clock;
  readonly random: () => number;
  readonly backOff: BackOffLimits;
  readonly graceMs: number;
  readonly onState: (state: RelaySessionState, reason: string) => void;
}

export class RelaySession {
  readonly #options: RelaySessionOptions;
  #state: RelaySessionState = "closed";
  #upstream: ByteStream | undefined;
  #stream = 0;
  #attempt = 0;
  /** Responses of the control plane so far. */
  #heard = 0;
  /** The control plane has let `graceMs` pass, and has said nothing since. */
  #isSilent = false;
  #cancelRetry: () => void = () => undefined;
  readonly #cancelGraces = new Set<() => void>();

  constructor(options: RelaySessionOptions) {
    this.#options = options;
    this.#connect();
  }

  get state(): RelaySessionState {
    return this.#state;
  }

  /** A request of the proxy. @throws if the bytes are none */
  fromProxy(bytes: Uint8Array): void {
    const { forControlPlane, asksAnew } = this.#options.conversation.fromProxy(bytes);
    if (this.#state === "live" && forControlPlane !== undefined) this.#upstream?.write(forControlPlane);
    if (asksAnew === undefined) return;
    if (this.#state === "offline" || this.#isSilent) this.#standIn(asksAnew);
    else this.#standInLater(asksAnew);
  }

  /** On the connection to the control plane; undefined while there is none. */
  call(request: CallOnStream): Promise<UnaryAnswer> | undefined {
    return this.#state === "live" ? this.#upstream?.call?.(request) : undefined;
  }

  /** The proxy's stream takes more again. */
  proxyDrained(): void {
    this.#upstream?.resume();
  }

  /**
   * Changes to a new stream, which shows the newest certificate: the control plane ends a connection when the one
   * that was shown expires. What the proxy asked for is asked for again there; it notices nothing.
   */
  renew(): void {
    if (this.#state !== "live") return;
    this.#upstream?.close();
    this.#connect();
  }

  close(): void {
    if (this.#state === "closed") return;
    this.#cancelRetry();
    for (const cancel of this.#cancelGraces) cancel();
    this.#upstream?.close();
    this.#upstream = undefined;
    this.#enter("closed", "the proxy has gone");
  }

  #enter(state: RelaySessionState, reason: string): void {
    this.#state = state;
    this.#options.onState(state, reason);
  }

  #connect(): void {
    this.#stream += 1;
    this.#options.conversation.nextStream();
    const stream = this.#stream;
    const ifCurrent = (work: () => void): void => {
      if (this.#state !== "closed" && this.#stream === stream) work();
    };
    this.#enter("connecting", "");
    this.#upstream = this.#options.openUpstream({
      onOpen: () => ifCurrent(() => this.#opened()),
      onMessage: (bytes) => ifCurrent(() => this.#fromUpstream(bytes)),
      onEnd: (reason) => ifCurrent(() => this.#ended(reason)),
    });
  }

  #opened(): void {
    this.#enter("live", "");
    for (const bytes of this.#options.conversation.openingRequests()) this.#upstream?.write(bytes);
  }

  #ended(reason: string): void {
    this.#upstream = undefined;
    this.#enter("offline", reason);
    const { backOff, random, clock } = this.#options;
    this.#cancelRetry = clock.after(backOffMs(backOff, this.#attempt, random), () => this.#connect());
    this.#attempt += 1;
    this.#standIn();
  }

  #fromUpstream(bytes: Uint8Array): void {
    try {
      this.#options.conversation.fromControlPlane(bytes);
    } catch (error) {
      this.#upstream?.close();
      this.#ended(`what the control plane sent cannot be read: ${(error as Error).message}`);
      return;
    }
    this.#attempt = 0;
    this.#isSilent = false;
    this.#heard += 1;
    if (!this.#options.toProxy(bytes)) this.#upstream?.pause();
  }

  #standInLater(typeUrl: string): void {
    const heardBefore = this.#heard;
    const cancel = this.#options.clock.after(this.#options.graceMs, () => {
      this.#cancelGraces.delete(cancel);
      if (this.#heard === heardBefore) this.#isSilent = true;
      this.#standIn(typeUrl);
    });
    this.#cancelGraces.add(cancel);
  }

  #standIn(typeUrl?: string): void {
    for (const bytes of this.#options.conversation.standIn(typeUrl)) this.#options.toProxy(bytes);
  }
}
