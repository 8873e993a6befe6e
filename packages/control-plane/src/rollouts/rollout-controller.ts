// The one owner of where roll-outs stand: takes their steps, gathers evidence, goes back when it is bad, and says what
// the snapshot lays over the routes. More goes to a canary only once that is on disk; back goes at once.
import type { Clock } from "@tulle/timing";
import { type MeshConfig, meshConfigOf, parseDuration, type Rollout, type Store } from "@tulle/config";
import { asksLeader, type RolloutAction, type RolloutView } from "@tulle/config/api";
import type { Logger } from "@tulle/telemetry";
import { writtenRoutes } from "../snapshot/build-snapshot.ts";
import type { OverlaidParts, RolloutOverlay } from "../snapshot/rollout-overlay.ts";
import type { EndpointSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import { frozenReason } from "./freeze.ts";
import { type EvidenceSources, type MeasuredTraffic, RolloutEvidence } from "./rollout-evidence.ts";
import * as machine from "./rollout-machine.ts";
import type { ActiveMetric, RolloutState } from "./rollout-machine.ts";
import { type Asked, RolloutRefused } from "./asked.ts";
import type { Leadership } from "../state/leadership.ts";
import { conditionsOf, overlaysOf, statesOf } from "./rollout-conditions.ts";
import { rolloutPlan } from "./rollout-plan.ts";
import { keyOfEntry, measureAnew, newEntry, type RolloutEntry, sameText, tellStrangers } from "./rollout-entry.ts";
import * as target from "./rollout-target.ts";
import { rolloutView } from "./rollout-view.ts";
import { whyNotStart } from "./why-not-start.ts";
import type { RolloutStates, SavedRollouts } from "./saved-rollouts.ts";

/** Rollouts that are followed; further ones do not start. */
export const maxRollouts = 1000;
/** How soon it is looked again whether a freeze has ended, and whether the disk takes the state. */
const lookAgainMs = 5000;

export interface RolloutControllerOptions {
  readonly store: Pick<Store, "list" | "get" | "watch">;
  /** What is routed by. */
  readonly reader: ResourceReader;
  readonly saved: SavedRollouts;
  readonly sources: Omit<EvidenceSources, "query"> & {
    /** `allowed` is the operator's list of addresses. */
    readonly query: (
      prometheus: NonNullable<ActiveMetric["metric"]["prometheus"]>,
      allowed: readonly string[],
    ) => ReturnType<EvidenceSources["query"]>;
  };
  /** Who of several takes the steps; the others lay over the routes what that one has saved. This one when missing. */
  readonly leadership?: Leadership | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export class RolloutController {
  readonly #options: RolloutControllerOptions;
  readonly #entries = new Map<string, RolloutEntry>();
  readonly #ends: readonly (() => void)[];
  #endpoints: EndpointSnapshot | undefined;
  #parts: OverlaidParts | undefined;
  #onChange = (): void => undefined;
  #overlays: readonly RolloutOverlay[] = [];
  /** Each piece of work begins when the one before has ended. */
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    // One that is not there any more was deleted, or forgotten: another of its name begins at its own beginning.
    for (const rollout of options.store.list("Rollout")) this.#entry(rollout);
    this.#goOnFrom(options.saved.saved);
    this.#overlays = this.#currentOverlays();
    const unwatch = options.store.watch((changes) => {
      const touched = changes.flatMap(({ type, resource }) =>
        resource.kind === "Rollout" ? [{ isGone: type === "deleted", resource }] : [],
      );
      for (const { isGone, resource } of touched) {
        if (isGone) this.#forget(keyOf(resource));
        else this.#entry(resource);
      }
      if (touched.length > 0) void this.#enqueue(() => (this.#leads ? this.#look() : this.#takeOver()));
    });
    const takeOver = (): void => void this.#enqueue(() => this.#takeOver());
    const heard = options.saved.follow(() => this.#leads || takeOver());
    this.#ends = [unwatch, heard, options.leadership?.follow(takeOver) ?? (() => undefined)];
  }

  /** What is laid over the routes now. */
  get overlays(): readonly RolloutOverlay[] {
    return this.#overlays;
  }

  /** Whoever builds snapshots hears when they have changed. */
  follow(onChange: () => void): void {
    this.#onChange = onChange;
  }

  /** Services, rules or endpoints have changed. */
  meshChanged({ endpoints }: { readonly endpoints: EndpointSnapshot }): void {
    this.#endpoints = endpoints;
    this.#parts = undefined;
    if (this.#entries.size > 0) void this.#enqueue(() => this.#look());
  }

  views(): readonly RolloutView[] {
    return [...this.#entries.values()].map((entry) => this.#view(entry));
  }

  view(namespace: string, name: string): RolloutView | undefined {
    const entry = this.#entries.get(`${namespace}/${name}`);
    return entry && this.#view(entry);
  }

  /** @throws {RolloutRefused} where it cannot be done now */
  async act(namespace: string, name: string, action: RolloutAction, asked: Asked): Promise<void> {
    await this.#enqueue(async () => {
      if (!this.#leads) throw new RolloutRefused(`${asksLeader}: ${this.#options.leadership?.leader}`);
      const entry = this.#entries.get(`${namespace}/${name}`);
      if (entry === undefined) throw new RolloutRefused(`there is no Rollout ${namespace}/${name}`);
      const next = this.#asked(entry, action, asked);
      if (action === "start") {
        measureAnew(entry);
        entry.workloads.clear();
      }
      await this.#commit(entry, next);
      if (entry.notSaved !== undefined) throw new RolloutRefused(entry.notSaved);
      await this.#take(entry);
    });
  }

  /** Resolves when all that was asked for so far is done. */
  settled(): Promise<void> {
    return this.#work;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#ends) end();
    for (const entry of this.#entries.values()) entry.cancel();
    await this.#work;
  }

  get #leads(): boolean {
    return this.#options.leadership?.isLeader !== false;
  }

  #goOnFrom(saved: RolloutStates): void {
    for (const [key, entry] of this.#entries) {
      const state = saved.get(key);
      entry.state = state && machine.notAfter(state, this.#options.clock.nowMs());
    }
  }

  /** Another leads and has gone on, or this one begins to, or ends: all that counts is what was saved. */
  async #takeOver(): Promise<void> {
    const saved = await this.#options.saved.read();
    this.#goOnFrom(saved);
    for (const entry of this.#entries.values()) {
      entry.cancel();
      if (!this.#leads) measureAnew(entry);
    }
    await this.#look();
  }

  #asked(entry: RolloutEntry, action: RolloutAction, { by, isFull = false }: Asked): RolloutState {
    const { clock } = this.#options;
    const { state, resource } = entry;
    const nowMs = clock.nowMs();
    if (action === "start") return this.#start(entry, resource, by, nowMs);
    if (state === undefined) throw new RolloutRefused("it has not been started");
    if (state.outcome !== "running") throw new RolloutRefused(`it has ${state.outcome}: start begins anew`);
    switch (action) {
      case "pause":
        return machine.paused(state, by, nowMs);
      case "resume":
        return machine.resumed(state, rolloutPlan(state.spec), by, nowMs);
      case "abort":
        return machine.aborted(state, `by ${by}`, nowMs);
      case "promote": {
        const { problem, frozen, noPods } = this.#conditions(entry, state);
        const obstacle = problem ?? frozen ?? noPods;
        if (obstacle !== undefined) throw new RolloutRefused(`it cannot go on: ${obstacle}`);
        return machine.promoted(state, rolloutPlan(state.spec), { isFull, by }, nowMs);
      }
    }
  }

  #start(entry: RolloutEntry, { spec }: Rollout, by: string, nowMs: number): RolloutState {
    const { state } = entry;
    if (state?.outcome === "running") throw new RolloutRefused("it runs already: abort it first");
    if (state?.outcome === "completed" && sameText(state.spec, spec)) {
      throw new RolloutRefused("it has completed: name other versions before it starts again");
    }
    if (this.#entries.size > maxRollouts) throw new RolloutRefused(`there are more than ${maxRollouts} Rollouts`);
    const { store, reader } = this.#options;
    const problem = whyNotStart(entry, spec, {
      parts: this.#written(),
      reader,
      entries: [...this.#entries.values()],
      all: store.list("Rollout"),
    });
    if (problem !== undefined) throw new RolloutRefused(`it cannot start: ${problem}`);
    return machine.started(spec, state, by, nowMs);
  }

  #view(entry: RolloutEntry): RolloutView {
    const { resource, state, namespace, name, wait, waiting, notSaved } = entry;
    const isEdited = state !== undefined && !sameText(state.spec, resource.spec);
    const conditions = { wait, waiting, notSaved, isEdited, isCanaryGone: entry.isCanaryGone };
    return rolloutView({ namespace, name }, state?.spec ?? resource.spec, state, conditions);
  }

  /** All of them: the mesh has changed, or a Rollout. */
  async #look(): Promise<void> {
    for (const entry of this.#entries.values()) await this.#take(entry);
    this.#publish();
  }

  /** Goes as far as the roll-out can, and sees to it that it is looked at again. */
  async #take(entry: RolloutEntry): Promise<void> {
    const { state } = entry;
    if (this.#isClosed || !this.#leads || state === undefined || this.#endpoints === undefined) return;
    const { clock } = this.#options;
    const conditions = this.#conditions(entry, state);
    const went = machine.advance(state, rolloutPlan(state.spec), conditions, clock.nowMs());
    if (went.state !== state) await this.#commit(entry, went.state);
    else this.#publish();
    entry.wait = went.wait;
    this.#measure(entry);
    this.#schedule(entry);
  }

  #conditions(entry: RolloutEntry, state: RolloutState): machine.Conditions {
    return conditionsOf(entry, state, this.#written(), this.#endpoints!, this.#options.clock.nowMs());
  }

  /** More goes to the canary once that is saved, whatever else at once. */
  async #commit(entry: RolloutEntry, next: RolloutState): Promise<void> {
    const before = entry.state;
    const isMore =
      next.weight > (before?.weight ?? 100) ||
      (next.headerMatch !== undefined && !sameText(next.headerMatch, before?.headerMatch)) ||
      before === undefined;
    if (!isMore) {
      entry.state = next;
      this.#publish();
    }
    this.#tell(entry, before, next);
    try {
      await this.#options.saved.save(statesOf(this.#entries.values(), entry, next));
      entry.notSaved = undefined;
    } catch (error) {
      entry.notSaved = `where it stands cannot be saved: ${String(error)}`;
      this.#options.log.error("a roll-out cannot be saved", { rollout: keyOfEntry(entry), reason: String(error) });
      if (isMore) return;
    }
    entry.state = next;
    this.#publish();
  }

  #tell(entry: RolloutEntry, before: RolloutState | undefined, { history }: RolloutState): void {
    const known = new Set(before?.history);
    for (const each of history) {
      if (!known.has(each)) this.#options.log.info("roll-out", { rollout: keyOfEntry(entry), what: each.text });
    }
  }

  /** Begins to measure what is to be measured, and judges what is due. Evidence comes while other work goes on. */
  #measure(entry: RolloutEntry): void {
    const { clock, sources } = this.#options;
    const { state } = entry;
    if (entry.measuredSinceMs !== state?.raisedAtMs) measureAnew(entry);
    entry.measuredSinceMs = state?.raisedAtMs;
    const active = state === undefined ? [] : machine.activeMetrics(state, rolloutPlan(state.spec));
    const keys = new Set(active.map(({ key }) => key));
    for (const key of entry.dueAtMs.keys()) if (!keys.has(key)) entry.dueAtMs.delete(key);
    for (const key of entry.waiting.keys()) if (!keys.has(key)) entry.waiting.delete(key);
    if (state === undefined || active.length === 0) {
      entry.evidence = undefined;
      return;
    }
    const query: EvidenceSources["query"] = (prometheus) =>
      sources.query(prometheus, this.#meshConfig().rolloutPrometheusUrls ?? []);
    const evidence = (entry.evidence ??= new RolloutEvidence({ ...sources, query }));
    evidence.keep(keys);
    const fresh = active.filter(({ key }) => !entry.dueAtMs.has(key));
    const nowMs = clock.nowMs();
    const due = active.filter(({ key }) => (entry.dueAtMs.get(key) ?? nowMs + 1) <= nowMs);
    if (fresh.length > 0)
      void this.#gather(entry, evidence, fresh, async () => {
        const freshKeys = fresh.map(({ key }) => key);
        await evidence.begin(freshKeys, this.#traffic(entry, state));
        return [];
      });
    if (due.length > 0) void this.#gather(entry, evidence, due, () => evidence.judge(due, this.#traffic(entry, state)));
  }

  async #gather(
    entry: RolloutEntry,
    evidence: RolloutEvidence,
    metrics: readonly ActiveMetric[],
    gather: () => ReturnType<RolloutEvidence["judge"]>,
  ): Promise<void> {
    for (const { key } of metrics) entry.dueAtMs.set(key, Number.POSITIVE_INFINITY);
    const found = await gather();
    await this.#enqueue(async () => {
      // Forgotten meanwhile: it has ended, or begun anew, or another leads.
      if (entry.evidence !== evidence || entry.state === undefined || !this.#leads) return;
      const nowMs = this.#options.clock.nowMs();
      for (const { key, metric } of metrics) entry.dueAtMs.set(key, nowMs + (parseDuration(metric.interval) ?? 0));
      let next = tellStrangers(entry, entry.state, evidence.strangers, nowMs);
      for (const { active, verdict } of found) {
        if (next.outcome !== "running") break;
        if (verdict.type === "judged") {
          entry.waiting.delete(active.key);
          next = machine.judged(next, active, verdict, nowMs);
        } else entry.waiting.set(active.key, verdict);
      }
      if (next !== entry.state) await this.#commit(entry, next);
      await this.#take(entry);
    });
  }

  #traffic(entry: RolloutEntry, { spec }: RolloutState): MeasuredTraffic {
    const { reader } = this.#options;
    const parts = this.#written();
    const host = target.hostOf(spec, entry.namespace, parts);
    const { versions } = target.countedWorkloads(spec, host, parts, reader);
    for (const [workload, version] of versions) entry.workloads.set(workload, version);
    const known = target.knownVersions(entry, spec);
    return { host, pods: target.measuredPods(reader, known), versions: known };
  }

  #schedule(entry: RolloutEntry): void {
    const { clock } = this.#options;
    entry.cancel();
    if (entry.state?.outcome !== "running" && entry.notSaved === undefined) return;
    const nowMs = clock.nowMs();
    const pauseEnd = entry.wait?.type === "paused" ? entry.wait.untilMs : undefined;
    const isHeld = entry.notSaved !== undefined || frozenReason(entry.resource.spec.freeze, nowMs) !== undefined;
    const times = [pauseEnd, ...entry.dueAtMs.values(), isHeld ? nowMs + lookAgainMs : undefined];
    const nextMs = Math.min(...times.filter((time) => time !== undefined));
    if (!Number.isFinite(nextMs)) return;
    entry.cancel = clock.after(Math.max(0, nextMs - nowMs), () => void this.#enqueue(() => this.#again(entry)));
  }

  async #again(entry: RolloutEntry): Promise<void> {
    if (!this.#leads) return;
    if (entry.notSaved !== undefined && entry.state !== undefined) await this.#commit(entry, entry.state);
    await this.#take(entry);
  }

  #publish(): void {
    const next = this.#currentOverlays();
    if (sameText(next, this.#overlays)) return;
    this.#overlays = next;
    this.#onChange();
  }

  #currentOverlays(): readonly RolloutOverlay[] {
    return overlaysOf(this.#entries.values(), this.#written());
  }

  #written(): OverlaidParts {
    return (this.#parts ??= writtenRoutes(this.#options.reader));
  }

  #meshConfig(): MeshConfig {
    return meshConfigOf(this.#options.reader.list("ConfigMap"));
  }

  /** With what the resource says now. */
  #entry(resource: Rollout): RolloutEntry {
    const key = keyOf(resource);
    let entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, (entry = newEntry(resource)));
    entry.resource = resource;
    return entry;
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.cancel();
    measureAnew(entry);
    this.#entries.delete(key);
    if (entry.state !== undefined && this.#leads)
      void this.#enqueue(() => this.#options.saved.save(statesOf(this.#entries.values())));
  }

  /** What fails is the asker's to hear of, and stops nothing that comes after. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch((error: unknown) => {
      if (!(error instanceof RolloutRefused)) this.#options.log.error("roll-outs", { reason: String(error) });
    });
    return done;
  }
}

function keyOf({ metadata }: Rollout): string {
  return `${metadata.namespace}/${metadata.name}`;
}
