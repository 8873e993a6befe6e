// The ADS client of a proxy: the state machine of a variant with a clock, gRPC and the decoding of resources around it.
import { type Clock, systemClock, Pauses } from "@tulle/timing";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import type {
  AdsClient,
  AdsClientHandlers,
  AdsClientOptions,
  AdsClientState,
  AdsResponse,
  ResourceError,
  Verdict,
} from "./ads-client-api.ts";
import type { SubscribedNames } from "./ads-server-api.ts";
import { type ByteStream, type ByteStreamEvents, openByteStream } from "./byte-stream.ts";
import type {
  ClientAction,
  ClientEvent,
  ClientMachine,
  ClientRequest,
  ClientVariant,
  Delivery,
  Expiry,
  ReceivedContent,
  ReceivedResponse,
} from "./client-machine.ts";
import { decodeInSlices } from "./decode-in-slices.ts";
import { contentVersionInSlices } from "./encoded-resource.ts";
import type { ResourceTypeName } from "./resource-types.ts";
import { resourceType } from "./resource-types.ts";
import { RequestPace } from "./request-pace.ts";
import { ResourceTtls } from "./resource-ttls.ts";
import { sotwClient } from "./sotw/variant.ts";

type Schemas = Readonly<Record<ResourceTypeName, DescMessage>>;
type Received = ReceivedResponse<ReceivedContent>;

export const defaultBackOff = { baseMs: 200, maxMs: 10_000 } as const;

/** Connects, and keeps connecting; returns at once. */
export function connectAds(options: AdsClientOptions): AdsClient {
  const client = new GrpcAdsClient(sotwClient, options);
  client.start();
  return client;
}

class GrpcAdsClient<Request extends ClientRequest, Response extends Received> implements AdsClient {
  readonly #variant: ClientVariant<Request, Response>;
  readonly #options: AdsClientOptions;
  readonly #clock: Clock;
  readonly #machine: ClientMachine<Request, Response>;
  #subscriptions = new Map<ResourceTypeName, SubscribedNames>();
  #stream: ByteStream | undefined;
  readonly #pace: RequestPace<Request>;
  readonly #ttls: ResourceTtls;
  #cancelWake: () => void = () => undefined;
  #schemas: Promise<Schemas> | undefined;

  constructor(variant: ClientVariant<Request, Response>, options: AdsClientOptions) {
    this.#variant = variant;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#machine = variant.newMachine({
      backOff: options.backOff ?? defaultBackOff,
      random: options.random ?? Math.random,
    });
    this.#pace = new RequestPace({
      clock: this.#clock,
      limit: options.rateLimit,
      send: (request) => this.#stream?.write(variant.encodeRequest(request, options.node)),
      merge: variant.mergeRequests,
      onPending: (pending, isHeldBack) => options.handlers.onPending?.(pending, isHeldBack),
    });
    this.#ttls = new ResourceTtls(this.#clock, (type, name) => this.#step({ kind: "expired", type, names: [name] }));
  }

  get state(): AdsClientState {
    return this.#machine.state;
  }

  start(): void {
    this.#perform(this.#machine.start());
  }

  subscribe(type: ResourceTypeName, names: SubscribedNames): void {
    if (this.#subscriptions.size === 0) queueMicrotask(() => this.#flushSubscriptions());
    this.#subscriptions.set(type, names);
  }

  close(): void {
    this.#step({ kind: "close" });
  }

  #flushSubscriptions(): void {
    const changes = this.#subscriptions;
    if (changes.size === 0) return;
    this.#subscriptions = new Map();
    this.#step({ kind: "subscribe", changes });
  }

  #step(event: ClientEvent<Response>): void {
    this.#perform(this.#machine.step(event, this.#clock.nowMs()));
  }

  #perform(actions: readonly ClientAction<Request, Response>[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case "open":
          this.#open();
          break;
        case "send":
          this.#pace.push(action.request);
          break;
        case "deliver":
          void this.#deliver(action);
          break;
        case "expire":
          void this.#expire(action);
          break;
        case "state":
          this.#enter(action.state);
          break;
        case "ignored":
          break;
        case "end":
          this.#cancelWake();
          this.#closeStream();
          this.#ttls.close();
          break;
      }
    }
    // One response at a time: the rest waits in HTTP/2's flow control, and so in the control plane.
    if (this.#machine.isDeciding) this.#stream?.pause();
    else this.#stream?.resume();
  }

  #enter(state: AdsClientState): void {
    this.#cancelWake();
    if (state.kind === "waiting") {
      const delayMs = Math.max(0, state.retryAtMs - this.#clock.nowMs());
      this.#cancelWake = this.#clock.after(delayMs, () => this.#step({ kind: "wake" }));
    }
    this.#options.handlers.onState?.(state);
  }

  #open(): void {
    this.#closeStream();
    const ifCurrent = (work: () => void): void => {
      if (this.#stream === stream) work();
    };
    const { target, tls, service } = this.#options;
    const events: ByteStreamEvents = {
      onOpen: () => ifCurrent(() => this.#step({ kind: "opened" })),
      onMessage: (bytes) => ifCurrent(() => this.#received(bytes)),
      onEnd: (reason) => ifCurrent(() => this.#ended(reason)),
    };
    const stream =
      typeof target === "function"
        ? target(events)
        : openByteStream(target, events, {
            ...(tls === undefined ? {} : { tls }),
            ...(service === undefined ? {} : { service }),
          });
    this.#stream = stream;
  }

  #closeStream(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    this.#pace.clear();
    stream?.close();
  }

  #ended(reason: string): void {
    this.#closeStream();
    this.#step({ kind: "ended", reason });
  }

  #received(bytes: Uint8Array): void {
    let response: Response;
    try {
      response = this.#variant.decodeResponse(bytes);
    } catch (error) {
      this.#ended((error as Error).message);
      return;
    }
    this.#step({ kind: "response", response });
  }

  async #deliver(action: Delivery<Response>): Promise<void> {
    this.#schemas ??= import("./resource-schemas.ts").then((module) => module.resourceSchemas);
    let errors: readonly ResourceError[];
    let kept: readonly string[] = [];
    this.#renew(action);
    try {
      const response = await decodeResources(action, await this.#schemas, this.#options.handlers);
      kept = action.removed.filter((name) => !response.removed.includes(name));
      const verdict: Verdict = await this.#options.handlers.onResponse(response);
      errors = [...response.errors, ...verdict];
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      errors = action.response.names.map((name) => ({ name, message }));
      if (errors.length === 0) errors = [{ name: "", message }];
    }
    // Names that the consumer subscribed to while it looked at the response go out before the ACK.
    this.#flushSubscriptions();
    this.#step({ kind: "verdict", nonce: action.response.nonce, stream: action.stream, errors, kept });
  }

  /** Times to live begin anew when a response comes, whatever is thought of it. */
  #renew({ type, response, removed }: Delivery<Response>): void {
    const { timesToLiveMs } = response.content;
    for (const name of response.names) if (name !== "") this.#ttls.renew(type, name, timesToLiveMs.get(name));
    for (const name of removed) this.#ttls.forget(type, name);
  }

  async #expire({ type, names, versionInfo, stream }: Expiry): Promise<void> {
    // It may have come again while it waited for its turn.
    const removed = names.filter((name) => this.#ttls.isExpired(type, name));
    for (const name of removed) this.#ttls.forget(type, name);
    const kept = names.filter((name) => !removed.includes(name));
    const nothing = { resources: new Map(), versions: new Map(), errors: [], nonce: "", controlPlaneId: "" };
    try {
      if (removed.length > 0) await this.#options.handlers.onResponse({ ...nothing, type, versionInfo, removed });
    } finally {
      this.#step({ kind: "verdict", nonce: "", stream, errors: [], kept });
    }
  }
}

async function decodeResources(
  action: Delivery<Received>,
  schemas: Schemas,
  handlers: AdsClientHandlers,
): Promise<AdsResponse> {
  const { type, response, removed } = action;
  const { typeUrl } = resourceType(type);
  const resources = new Map<string, Message | Uint8Array>();
  const versions = new Map<string, string>();
  const errors: ResourceError[] = [];
  const seen = new Set<string>();
  const pauses = new Pauses();
  for (const [index, any] of response.content.resources.entries()) {
    const name = response.names[index]!;
    const refuse = (message: string): void => void errors.push({ name: name || `#${index}`, message });
    if (any.typeUrl !== typeUrl) refuse(`is a ${any.typeUrl}, not a ${typeUrl}`);
    else if (name === "") refuse("has no name");
    else if (seen.has(name)) refuse("stands twice in one response");
    else {
      seen.add(name);
      const version = await contentVersionInSlices(any.value, pauses);
      if (handlers.holds?.(type, name, version) === true) continue;
      const bytes = ownBytes(any.value);
      try {
        resources.set(name, type === "RDS" ? bytes : await decodeInSlices(schemas[type], bytes, pauses));
        versions.set(name, version);
      } catch (error) {
        refuse(`cannot be decoded: ${error instanceof Error ? error.message : String(error)}`);
      }
      await pauses.takeIfDue();
    }
  }
  const { versionInfo, nonce } = response;
  // The schema table pairs each type with its message, which TypeScript cannot follow through the index.
  // What cannot be read may be what seems to be left out.
  const gone = errors.length === 0 ? removed : [];
  const { controlPlaneId } = response.content;
  return {
    type,
    versionInfo,
    nonce,
    resources,
    versions,
    removed: gone,
    errors,
    controlPlaneId,
  } as unknown as AdsResponse;
}

/**
 * Decoded bytes are views, and a resource lives for as long as it does not change: by views of its response it would
 * keep all the others, in a thousand responses a thousand times. What is most of its response may keep the rest.
 */
function ownBytes(value: Uint8Array): Uint8Array {
  return value.byteLength * 2 > value.buffer.byteLength ? value : new Uint8Array(value);
}
