// One ADS stream as the control plane sees it: the state machine of a variant with a clock, a byte stream and handlers
// around it.
import type { Clock } from "@tulle/timing";
import { create, toBinary } from "@bufbuild/protobuf";
import type {
  AdsConnection,
  AdsServerHandlers,
  AdsServerLimits,
  AdsServerOptions,
  SubscribedNames,
  TypeStatus,
} from "./ads-server-api.ts";
import type { ServerByteStream } from "./byte-stream-server.ts";
import type { EncodedResource } from "./encoded-resource.ts";
import { type Node, NodeSchema } from "./generated/envoy/config/core/v3/base_pb.ts";
import { type ResourceTypeName, resourceTypeOfUrl } from "./resource-types.ts";
import type {
  ServerAction,
  ServerEvent,
  ServerMachine,
  ServerRequest,
  ServerResponse,
  ServerVariant,
} from "./server-machine.ts";
import type { PeerIdentity } from "./transport-security.ts";
import type { GrpcStatusName } from "./unary-calls.ts";

interface ConnectionOptions<Request extends ServerRequest, Response extends ServerResponse> {
  readonly variant: ServerVariant<Request, Response>;
  readonly id: number;
  readonly noncePrefix: string;
  readonly handlers: AdsServerHandlers;
  readonly refusal: AdsServerOptions["refusal"];
  readonly onTurnedAway: AdsServerOptions["onTurnedAway"];
  readonly limits: AdsServerLimits;
  readonly controlPlaneId: string;
  readonly clock: Clock;
  readonly stream: ServerByteStream;
}

export class AdsServerConnection<
  Request extends ServerRequest,
  Response extends ServerResponse,
> implements AdsConnection {
  readonly id: number;
  readonly peer: string;
  readonly peerIdentity: PeerIdentity | undefined;
  readonly connectedAtMs: number;
  node: Node = create(NodeSchema);
  /** The first request has come, so that the handlers know of this stream. */
  isConnected = false;
  readonly #handlers: AdsServerHandlers;
  readonly #refusal: AdsServerOptions["refusal"];
  readonly #onTurnedAway: AdsServerOptions["onTurnedAway"];
  readonly #limits: AdsServerLimits;
  readonly #controlPlaneId: string;
  readonly #clock: Clock;
  readonly #stream: ServerByteStream;
  readonly #variant: ServerVariant<Request, Response>;
  readonly #machine: ServerMachine<Request, Response>;
  /** Declarations of this turn of the event loop. */
  #declared = new Map<ResourceTypeName, ReadonlyMap<string, EncodedResource>>();
  /** The most resources of each type that there have been for this proxy. */
  readonly #most = new Map<ResourceTypeName, number>();
  #cancelWake: () => void = () => undefined;
  /** For the first request. */
  #cancelWait: () => void;
  #isClosed = false;

  constructor(options: ConnectionOptions<Request, Response>) {
    this.id = options.id;
    this.peer = options.stream.peer;
    this.peerIdentity = options.stream.peerIdentity;
    this.#handlers = options.handlers;
    this.#refusal = options.refusal;
    this.#onTurnedAway = options.onTurnedAway;
    this.#limits = options.limits;
    this.#controlPlaneId = options.controlPlaneId;
    this.#clock = options.clock;
    this.#stream = options.stream;
    this.#variant = options.variant;
    this.#machine = options.variant.newMachine({ limits: options.limits, noncePrefix: options.noncePrefix });
    this.connectedAtMs = options.clock.nowMs();
    const { firstRequestTimeoutMs } = options.limits;
    this.#cancelWait = options.clock.after(firstRequestTimeoutMs, () =>
      this.#turnAway("DEADLINE_EXCEEDED", `no request in ${firstRequestTimeoutMs} ms`),
    );
  }

  set(type: ResourceTypeName, resources: ReadonlyMap<string, EncodedResource>, existing = resources.size): void {
    if (this.#isClosed) return;
    this.#most.set(type, Math.max(existing, this.#most.get(type) ?? 0));
    if (this.#declared.size === 0) queueMicrotask(() => this.#guarded(() => this.#declare()));
    this.#declared.set(type, resources);
  }

  status(): ReadonlyMap<ResourceTypeName, TypeStatus> {
    return this.#machine.status(this.#declared);
  }

  close(status: GrpcStatusName, reason: string): void {
    if (!this.#isClosed) this.#fail(status, reason);
  }

  /** A request's bytes have arrived. */
  received(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    let request: Request;
    try {
      request = this.#variant.decodeRequest(bytes);
    } catch (error) {
      this.#turnAway("INVALID_ARGUMENT", (error as Error).message);
      return;
    }
    this.#cancelWait();
    const { maxNameCharacters } = this.#limits;
    if (request.names.some((name) => name.length > maxNameCharacters)) {
      this.#turnAway("INVALID_ARGUMENT", `a name has more than ${maxNameCharacters} characters`);
      return;
    }
    this.#guarded(() => {
      if (!this.isConnected && !this.#connect(request)) return;
      if (this.#isClosed || this.#asksForTooMuch(request)) return;
      this.#step({ kind: "request", ...request });
    });
  }

  /**
   * What is asked for is kept, and may cost an answer each. Beyond twice the most that there has been, nobody needs
   * more than `maxSpareNames`: those leave room for what has gone while the proxy was away.
   */
  #asksForTooMuch(request: Request): boolean {
    const { maxSpareNames } = this.#limits;
    const asked = this.#machine.namesAfter(request);
    if (asked <= maxSpareNames) return false;
    const type = resourceTypeOfUrl(request.typeUrl);
    const most = type === undefined ? 0 : (this.#most.get(type.shortName) ?? 0);
    const allowed = 2 * most + maxSpareNames;
    if (asked <= allowed) return false;
    this.#turnAway(
      "RESOURCE_EXHAUSTED",
      `a request names ${asked} resources of ${type?.shortName ?? "an unknown type"}, at most ${allowed} are taken`,
    );
    return true;
  }

  drained(): void {
    this.#guarded(() => this.#step({ kind: "writable", writable: true }));
  }

  /** The stream is gone; the last call. */
  closed(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelWake();
    this.#cancelWait();
    if (this.isConnected) this.#handlers.onDisconnect(this, reason);
  }

  #connect({ node }: Request): boolean {
    // "Only the first request on a stream is guaranteed to carry the node identifier."
    if (node === undefined || node.id === "") {
      this.#turnAway("INVALID_ARGUMENT", "the first request carries no node id");
      return false;
    }
    const { maxNodeBytes } = this.#limits;
    if (toBinary(NodeSchema, node).byteLength > maxNodeBytes) {
      this.#turnAway("INVALID_ARGUMENT", `the node has more than ${maxNodeBytes} bytes`);
      return false;
    }
    this.node = node;
    const refusal = this.#refusal?.(this);
    if (refusal !== undefined) {
      this.#fail("PERMISSION_DENIED", refusal);
      return false;
    }
    this.isConnected = true;
    this.#handlers.onConnect(this);
    return true;
  }

  /** For what the client did. */
  #turnAway(status: GrpcStatusName, details: string): void {
    if (this.#isClosed) return;
    this.#fail(status, details);
    this.#onTurnedAway?.(this.peer, { status, details });
  }

  #fail(kind: GrpcStatusName, details: string, reason: string = details): void {
    this.closed(reason);
    this.#stream.fail(kind, details);
  }

  /** What a handler throws is the control plane's own fault: this proxy's stream ends, the others go on. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      // The stack is for the operator's log alone.
      const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (this.isConnected) this.#handlers.onInternalError?.(this);
      this.#fail("INTERNAL", "the control plane failed", stack);
    }
  }

  #declare(): void {
    const changes = this.#declared;
    this.#declared = new Map();
    this.#step({ kind: "declare", changes });
  }

  #step(event: ServerEvent<Request>): void {
    if (this.#isClosed) return;
    const nowMs = this.#clock.nowMs();
    for (const action of this.#machine.step(event, nowMs)) this.#perform(action);
    this.#cancelWake();
    const wakeMs = this.#machine.nextWakeMs(nowMs);
    if (wakeMs === undefined) return;
    this.#cancelWake = this.#clock.after(wakeMs - nowMs, () => this.#guarded(() => this.#step({ kind: "wake" })));
  }

  #perform(action: ServerAction<Response>): void {
    switch (action.kind) {
      case "send":
        this.#send(action);
        break;
      case "subscribed": {
        const names: SubscribedNames = action.names;
        this.#handlers.onSubscribe(this, { type: action.type, names });
        break;
      }
      case "acked":
        this.#handlers.onAck?.(this, action.acknowledgement);
        break;
      case "nacked":
        this.#handlers.onNack?.(this, action.rejection);
        break;
      case "ignored":
        this.#handlers.onIgnored?.(this, action.ignored);
        break;
    }
  }

  #send(response: Response): void {
    const { type, nonce, resources } = response;
    const startMs = performance.now();
    const bytes = this.#variant.encodeResponse(response, this.#controlPlaneId);
    const writable = this.#stream.write(bytes);
    this.#handlers.onSent?.(this, {
      type: type.shortName,
      nonce,
      resources: resources.length,
      bytes: bytes.byteLength,
      tookMs: performance.now() - startMs,
    });
    // Within one step the machine does not see this; what it has decided to send is bounded by its window.
    if (!writable) this.#machine.step({ kind: "writable", writable: false }, this.#clock.nowMs());
  }
}
