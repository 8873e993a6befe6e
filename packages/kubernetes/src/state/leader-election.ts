// Who of several control planes leads: whoever holds a Lease (coordination.k8s.io/v1), by the rules of client-go. A
// holder is believed as long as its record keeps changing, by one's own clock: what times the record names is never
// compared, since clocks of two nodes differ.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError, unlessMissing } from "../client/kubernetes-error.ts";

export interface LeaderElectionOptions {
  readonly client: Pick<KubernetesClient, "request">;
  readonly namespace: string;
  readonly name: string;
  /** Of this control plane, and of no other: a pod's name, and something that is new at each start. */
  readonly identity: string;
  /** What is logged of whoever holds it: "leads". */
  readonly verb?: string;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

interface Lease {
  readonly apiVersion: "coordination.k8s.io/v1";
  readonly kind: "Lease";
  readonly metadata: { readonly name: string; readonly namespace: string; readonly resourceVersion?: string };
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/** client-go's: how long a record that does not change is believed, … */
const leaseSeconds = 15;
/** … how long a leader that cannot renew it goes on, … */
const renewWithinMs = 10_000;
/** … and how often it, and those that wait, try. */
const retryMs = 2_000;
/** Those that wait do not all ask in the same moment. */
const jitter = 1.2;

export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #listeners = new Set<() => void>();
  #isClosed = false;
  #wake: () => void = () => undefined;
  #isLeader = false;
  #seen: { readonly lease: Lease; readonly atMs: number } | undefined;
  #cancelEnd: () => void = () => undefined;
  #running: Promise<void> | undefined;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  get leader(): string | undefined {
    const holder = this.#seen?.lease.spec?.holderIdentity;
    return holder === "" ? undefined : holder;
  }

  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Gives the lease back: another may lead at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await this.#running;
    this.#cancelEnd();
    if (!this.#isLeader) return;
    this.#become(false);
    try {
      await this.#write({ holderIdentity: "", leaseDurationSeconds: 1 });
    } catch (error) {
      this.#options.log.info("the lease could not be given back; it ends by itself", { reason: messageOf(error) });
    }
  }

  async #run(): Promise<void> {
    const { clock, random = Math.random } = this.#options;
    while (!this.#isClosed) {
      await this.#try();
      if (this.#isClosed) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const delayMs = this.#isLeader ? retryMs : retryMs * (1 + random() * (jitter - 1));
      const cancel = clock.after(delayMs, resolve);
      this.#wake = resolve;
      await promise;
      cancel();
    }
  }

  async #try(): Promise<void> {
    const { log, identity, clock } = this.#options;
    const begunMs = clock.nowMs();
    try {
      if (!(await this.#acquireOrRenew())) return this.#become(false);
      // From before it was asked for: others count from when they see it.
      this.#cancelEnd();
      this.#cancelEnd = clock.after(Math.max(0, begunMs + renewWithinMs - clock.nowMs()), () => {
        if (this.#isLeader) log.warning("the lease could not be renewed: another may lead", { identity });
        this.#become(false);
      });
      this.#become(true);
    } catch (error) {
      log.debug("the lease cannot be asked for", { reason: messageOf(error) });
    }
  }

  async #acquireOrRenew(): Promise<boolean> {
    const { identity, clock } = this.#options;
    const there = await this.#read();
    if (there !== undefined) this.#see(there);
    // Somebody has removed it. Written over the one of before it would be refused, time and again.
    else this.#seen = undefined;
    const spec = there?.spec ?? {};
    const { holderIdentity: holder = "", leaseDurationSeconds = leaseSeconds, leaseTransitions = 0 } = spec;
    const isOurs = holder === identity;
    const isBelieved = holder !== "" && clock.nowMs() < this.#seen!.atMs + leaseDurationSeconds * 1000;
    if (!isOurs && isBelieved) return false;
    const now = new Date().toISOString().replace(/Z$/, "000Z");
    return this.#write({
      holderIdentity: identity,
      leaseDurationSeconds: leaseSeconds,
      acquireTime: isOurs ? (spec.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: isOurs || there === undefined ? leaseTransitions : leaseTransitions + 1,
    });
  }

  #see(lease: Lease): void {
    const isNew = lease.metadata.resourceVersion !== this.#seen?.lease.metadata.resourceVersion;
    if (isNew) this.#seen = { lease, atMs: this.#options.clock.nowMs() };
  }

  async #read(): Promise<Lease | undefined> {
    const { client } = this.#options;
    return unlessMissing(client.request<Lease>({ path: this.#path, signal: this.#withinTime() }));
  }

  /** False where another has written since it was seen. */
  async #write(spec: NonNullable<Lease["spec"]>): Promise<boolean> {
    const { client, namespace, name } = this.#options;
    const seen = this.#seen?.lease;
    const kind = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" } as const;
    const body: Lease =
      seen === undefined
        ? { ...kind, metadata: { name, namespace }, spec }
        : { ...seen, ...kind, spec: { ...seen.spec, ...spec } };
    const [method, path] = seen === undefined ? (["POST", this.#collection] as const) : (["PUT", this.#path] as const);
    try {
      this.#see(await client.request<Lease>({ method, path, body, signal: this.#withinTime() }));
      return true;
    } catch (error) {
      if (!(error instanceof KubernetesError) || (error.code !== 409 && error.code !== 404)) throw error;
      // Removed under us: made anew the next time.
      if (error.code === 404) this.#seen = undefined;
      return false;
    }
  }

  get #collection(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.#options.namespace}/leases`;
  }

  get #path(): string {
    return `${this.#collection}/${this.#options.name}`;
  }

  /** A server that does not answer is asked again before the lease ends. */
  #withinTime(): AbortSignal {
    return AbortSignal.timeout(renewWithinMs / 2);
  }

  #become(isLeader: boolean): void {
    if (this.#isLeader === isLeader) return;
    this.#isLeader = isLeader;
    const { log, identity, verb = "leads" } = this.#options;
    log.info(`this control plane ${verb}${isLeader ? "" : " no more"}`, { identity });
    for (const listener of this.#listeners) listener();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
