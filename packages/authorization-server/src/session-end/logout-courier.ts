// Tells clients that a session has ended (OpenID Connect Back-Channel Logout 1.0 §2.5), away from every request: takes
// what is due from the store, tries a few times, and writes into the audit log what could not be delivered. The
// addresses are an administrator's; what comes back is a status and nothing else, so that neither a slow nor an endless
// answer, nor one that leads elsewhere, does more than use up its own time.
import type { ServerContext } from "../server-context.ts";
import type { Client } from "../store/clients.ts";
import { findClient } from "../store/clients.ts";
import type { LogoutNotice } from "../store/logout-notices.ts";
import {
  dueLogoutNotices,
  maxNoticesOfClient,
  maxQueuedOfClient,
  removeLogoutNotice,
  takeLogoutNotice,
  trimLogoutNotices,
} from "../store/logout-notices.ts";
import { writeLogoutToken } from "./logout-token.ts";

const timeoutMs = 5000;
/** Before the second try and so on; after the last one there is none. */
const retryAfterMs = [5000, 30_000, 120_000, 600_000];
/** How long the last try holds its notice beyond its own time: whoever took it up sooner would send it once more. */
const lastHoldMs = 60_000;
const maxInFlight = 64;

/** Why it was not delivered; `isFinal` where another try would say the same. */
interface Failure {
  readonly reason: string;
  readonly isFinal: boolean;
}

export class LogoutCourier {
  readonly #server: ServerContext;
  /** What is being sent, and to which client. */
  readonly #inFlight = new Map<Promise<void>, string>();
  readonly #stopped = new AbortController();
  #looking: Promise<void> | undefined;
  /** There is room again since the look began. */
  #looksAgain = false;

  constructor(server: ServerContext) {
    this.#server = server;
  }

  /** One of the rounds that come at their interval: what is too much goes, and what is due is sent. */
  async round(): Promise<void> {
    const { audit, database, metrics } = this.#server;
    const trimmed = await database.transaction(trimLogoutNotices);
    for (const [clientId, count] of trimmed) {
      metrics.logoutNotices("given up").add(count);
      const reason = `more than ${maxQueuedOfClient} waited for this client: ${count} are given up`;
      audit.record({ event: "back-channel logout not delivered", error: "undelivered", reason, clientId });
    }
    await this.turn();
  }

  /**
   * Sends what is due, as far as there is room, and waits for none of it. Deliveries that end together share one look.
   */
  async turn(): Promise<void> {
    this.#looksAgain = true;
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  async #look(): Promise<void> {
    while (this.#looksAgain && !this.#stopped.signal.aborted) {
      this.#looksAgain = false;
      const { database } = this.#server;
      const due = await database.read((reader) => dueLogoutNotices(reader, maxInFlight / maxNoticesOfClient));
      for (const notice of due) this.#begin(notice);
    }
  }

  #begin(notice: LogoutNotice): void {
    const ofClient = [...this.#inFlight.values()].filter((clientId) => clientId === notice.clientId).length;
    if (this.#stopped.signal.aborted || this.#inFlight.size >= maxInFlight || ofClient >= maxNoticesOfClient) return;
    const sending: Promise<void> = this.#send(notice)
      .finally(() => this.#inFlight.delete(sending))
      // There is room again; the interval alone would make a long queue of one client wait for hours.
      .then(() => (this.#stopped.signal.aborted ? undefined : this.turn()))
      .catch((error: unknown) => this.#server.log.warning("back-channel logout failed", { error: String(error) }));
    this.#inFlight.set(sending, notice.clientId);
  }

  /** What is not delivered stays in the store for the next process. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#inFlight.keys());
  }

  async #send(notice: LogoutNotice): Promise<void> {
    const { database, metrics } = this.#server;
    const waitMs = retryAfterMs[notice.attempts];
    const taken = await database.transaction(async (transaction) => {
      if (!(await takeLogoutNotice(transaction, notice, timeoutMs + (waitMs ?? lastHoldMs)))) return undefined;
      return { client: await findClient(transaction, notice.clientId), nowMs: transaction.nowMs };
    });
    if (taken === undefined) return;
    const failure = await this.#deliver(taken.client, notice, taken.nowMs);
    const goesOn = failure?.isFinal === false && (waitMs !== undefined || this.#stopped.signal.aborted);
    if (goesOn) return;
    await database.transaction((transaction) => removeLogoutNotice(transaction, notice));
    metrics.logoutNotices(failure === undefined ? "delivered" : "given up").increment();
    if (failure !== undefined) this.#giveUp(notice, failure);
  }

  #giveUp({ sessionId, clientId, userId, attempts }: LogoutNotice, { reason }: Failure): void {
    this.#server.audit.record({
      event: "back-channel logout not delivered",
      error: "undelivered",
      reason: `${reason}; tries: ${attempts + 1}; session ${sessionId}`,
      clientId,
      userId,
    });
  }

  async #deliver(client: Client | undefined, notice: LogoutNotice, nowMs: number): Promise<Failure | undefined> {
    const uri = client?.backchannelLogoutUri;
    if (client === undefined || uri === undefined)
      return { reason: "the client is disabled or no longer asks for it", isFinal: true };
    try {
      const response = await fetch(uri, {
        method: "POST",
        body: new URLSearchParams({ logout_token: writeLogoutToken(this.#server, client, notice, nowMs) }),
        redirect: "manual",
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), this.#stopped.signal]),
      });
      // Nothing of it is of use; without this it could go on for as long as it likes.
      await response.body?.cancel();
      if (response.ok) return undefined;
      const mayPass = response.status >= 500 || response.status === 429 || response.status === 408;
      return { reason: `the answer was ${response.status}`, isFinal: !mayPass };
    } catch (error) {
      const { message, cause } = error as Error;
      return { reason: cause instanceof Error ? cause.message : message, isFinal: false };
    }
  }
}
