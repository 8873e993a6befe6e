// The agent's ADS server for its proxy: each stream on the pod's Unix socket is a session that passes through to the
// control plane and falls back on the last good state.
import { type BackOffLimits, type Clock, systemClock } from "@tulle/timing";
import {
  type ByteStreamServerLimits,
  type CallOnStream,
  type OnByteStream,
  type RunningByteStreamServer,
  type UnaryAnswer,
  type XdsVariant,
  serveByteStreams,
} from "@tulle/xds";
import { type Logger, RepeatedWarning } from "@tulle/telemetry";
import { explainTlsFailure } from "../identity/explain-tls-failure.ts";
import type { Conversation, ConversationOptions } from "./conversation.ts";
import { type RelayIdentity, openUpstream } from "./open-upstream.ts";
import { RelaySession, type RelaySessionState } from "./relay-session.ts";
import { loadState } from "./saved-state.ts";
import type { NameSubscription } from "../names/name-subscription.ts";
import { SotwConversation } from "./sotw-conversation.ts";
import { StateKeeper } from "./state-keeper.ts";

export interface RelayOptions {
  /** The Unix socket that the proxy connects to. */
  readonly socketPath: string;
  /** `http://host:port` of the control plane; `https://host:port` with an identity. */
  readonly controlPlane: string;
  /** What the workload shows to the control plane; each connection takes the newest. */
  readonly identity?: RelayIdentity & { readonly rootsFile: string };
  readonly statePath: string;
  /** A state that was saved for another node is refused. */
  readonly nodeId: string;
  /** What the agent itself asks for on the proxy's stream. */
  readonly names?: Pick<NameSubscription, "request" | "take">;
  /** The control plane has refused the workload, which may be none of the mesh any more. */
  readonly onRefused?: () => void;
  /** A session is live: perhaps with another control plane than before. */
  readonly onLive?: () => void;
  /** Aborted once the workload is none of the mesh any more: what becomes of the connection is no news then. */
  readonly gone?: AbortSignal;
  readonly log: Logger;
  readonly backOff?: BackOffLimits;
  /** How long a subscription may stay unanswered before the saved state answers it. */
  readonly graceMs?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface RunningRelay {
  /** States of the sessions, oldest first. */
  readonly states: readonly RelaySessionState[];
  /** On the newest session's connection to the control plane; undefined while there is none. */
  call(request: CallOnStream): Promise<UnaryAnswer> | undefined;
  /** Ends all streams, and resolves when the state is on disk. */
  close(): Promise<void>;
}

/** A proxy has one stream; a few more exist for moments while it restarts. */
const limits: ByteStreamServerLimits = {
  maxStreams: 16,
  maxRequestBytes: 4 * 1024 * 1024,
  maxResponseBytes: 64 * 1024 * 1024,
  // Over a Unix socket a peer that is gone is known to the kernel; one that is stopped is to be waited for.
  keepAliveIntervalMs: 60 * 60_000,
  keepAliveTimeoutMs: 60 * 60_000,
};

const defaultBackOff: BackOffLimits = { baseMs: 200, maxMs: 10_000 };
const defaultGraceMs = 2_000;

/** Loads the saved state and starts to serve; rejects if the socket cannot be bound. */
export async function startRelay(options: RelayOptions): Promise<RunningRelay> {
  const { log } = options;
  const clock = options.clock ?? systemClock;
  const loaded = loadState(options.statePath, options.nodeId);
  if (loaded.kind === "refused") {
    log.warning(`the saved state is not used: ${loaded.reason}`, { file: options.statePath, keptAs: loaded.keptAs });
  }
  const keeper = new StateKeeper({
    path: options.statePath,
    nodeId: options.nodeId,
    initial: loaded.kind === "loaded" ? loaded.state : new Map(),
    clock,
    log,
  });
  const sessions = new Set<RelaySession>();
  const states = new StateLog(options, clock);
  const parts: RelayParts = { options, keeper, clock, sessions, states };
  const server: RunningByteStreamServer = await serveByteStreams({
    address: { path: options.socketPath },
    limits,
    onStream: { sotw: relays(parts, "sotw", (of) => new SotwConversation(of)) },
  });
  const stopFollowing = options.identity === undefined ? undefined : renewOnRotation(options.identity, sessions);
  return {
    get states() {
      return [...sessions].map((session) => session.state);
    },
    call: (request) => [...sessions].findLast(({ state }) => state === "live")?.call(request),
    close: async () => {
      stopFollowing?.();
      for (const session of sessions) session.close();
      await server.close();
      await keeper.flush();
    },
  };
}

/** What all streams of a relay share. */
interface RelayParts {
  readonly options: RelayOptions;
  readonly keeper: StateKeeper;
  readonly clock: Clock;
  readonly sessions: Set<RelaySession>;
  readonly states: StateLog;
}

/** Relays the streams of one variant. */
function relays(
  { options, keeper, clock, sessions, states }: RelayParts,
  variant: XdsVariant,
  converse: (options: ConversationOptions) => Conversation,
): OnByteStream {
  const { log, names: subscription } = options;
  return (stream) => {
    let stoodIn = false;
    let hasAskedForNames = subscription === undefined;
    const conversation = converse({
      keeper,
      clock,
      onStoodIn: (type, names) => {
        if (!stoodIn) log.info("the saved state stands in for the control plane");
        stoodIn = true;
        log.debug(`answered ${type.shortName} from the saved state`, { resources: names.length });
      },
    });
    const session: RelaySession = new RelaySession({
      toProxy: (bytes) => {
        const answer = subscription?.take(bytes);
        if (answer === undefined) return stream.write(bytes);
        session.fromProxy(answer);
        return true;
      },
      openUpstream: (events) => openUpstream(options.controlPlane, options.identity, variant, events),
      conversation,
      clock,
      random: options.random ?? Math.random,
      backOff: options.backOff ?? defaultBackOff,
      graceMs: options.graceMs ?? defaultGraceMs,
      onState: (state, reason) => {
        stoodIn = false;
        states.enter(state, reason);
      },
    });
    sessions.add(session);
    return {
      onMessage: (bytes) => {
        try {
          session.fromProxy(bytes);
          if (hasAskedForNames) return;
          hasAskedForNames = true;
          session.fromProxy(subscription!.request());
        } catch (error) {
          stream.fail("INVALID_ARGUMENT", (error as Error).message);
        }
      },
      onDrain: () => session.proxyDrained(),
      onEnd: () => {
        sessions.delete(session);
        session.close();
      },
    };
  };
}

/** A renewed certificate is for new connections; other roots alone change nothing for those that stand. */
function renewOnRotation(identity: RelayIdentity, sessions: ReadonlySet<RelaySession>): () => void {
  let shown = identity.current?.leaf.serial;
  return identity.follow(({ leaf }) => {
    if (leaf.serial === shown) return;
    shown = leaf.serial;
    for (const session of sessions) session.renew();
  });
}

/**
 * A control plane that ends each stream is told of once: neither that it does so again, nor that it was there for a
 * moment.
 */
class StateLog {
  readonly #options: RelayOptions;
  readonly #warning: RepeatedWarning;
  /** Nothing was told yet, or a loss was told last. */
  #owesConnected = true;

  constructor(options: RelayOptions, clock: Clock) {
    this.#options = options;
    this.#warning = new RepeatedWarning(options.log, () => clock.nowMs());
  }

  enter(state: RelaySessionState, reason: string): void {
    const { log, controlPlane, identity, gone, onRefused, onLive } = this.#options;
    if (gone?.aborted === true) return;
    if (state === "live") onLive?.();
    if (state === "live" && this.#owesConnected) {
      log.info("connected to the control plane", { controlPlane });
      this.#owesConnected = false;
    } else if (state === "offline") {
      const told = identity && explainTlsFailure(reason, { controlPlane, rootsFile: identity.rootsFile });
      if (this.#warning.tell(`no control plane: ${told ?? reason}`, { controlPlane })) this.#owesConnected = true;
      if (reason.includes("PERMISSION_DENIED")) onRefused?.();
    } else log.debug(`relay ${state}`);
  }
}
