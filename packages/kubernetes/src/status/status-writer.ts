// Tells each resource of the mesh what has become of it, in its status: by the leader, seldom, and only what differs
// from what stands there. However many proxies answer, a change is told twice at the most: once when it is known
// whether it is accepted, and once when all have it.
import { type Finding, keyText, kindDefinitions, type ResourceKey, type Store, type Unwatch } from "@tulle/config";
import { type Logger, Trouble } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { objectPath } from "../store/collections.ts";
import type { FollowedObject } from "../store/kubernetes-store.ts";
import { conditionsIn, objectStatus, saysSame } from "./object-status.ts";
import type { KnownChange, ReplicaReports } from "./replica-reports.ts";

export interface StatusWriterOptions {
  readonly client: Pick<KubernetesClient, "apply">;
  readonly store: Pick<Store, "watch"> & { objects(): readonly FollowedObject[] };
  /** What the stages know, each of all resources at once. */
  readonly known: {
    findings(): readonly Finding[];
    setAside(): readonly Finding[];
    /** The newest of each, by `keyText`. */
    changes(): ReadonlyMap<string, KnownChange>;
    /** What proxies refuse, in words. */
    refusals(key: ResourceKey): readonly string[];
    /** Fields of kinds that have their own. */
    more(key: ResourceKey): Readonly<Record<string, unknown>>;
  };
  /** Undefined where there is no other. */
  readonly replicas: Pick<ReplicaReports, "syncOf" | "refusalsOf"> | undefined;
  readonly leadership: { readonly isLeader: boolean; readonly follow: (listener: () => void) => () => void };
  readonly clock: Clock;
  readonly log: Logger;
}

/** Of changes that come together, and of proxies that answer within it, the outcome alone is written. */
const soonMs = 1_000;
/** Proxies refuse, and answer, without a word to us. */
const laterMs = 10_000;
/** At the same time. */
const mostAtOnce = 4;
/** Its own, so that what `tulle` sets by other ways is not taken back with it. */
const fieldManager = "tulle-status";

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #trouble: Trouble;
  readonly #ends: readonly Unwatch[];
  /** What was written, and over which version: until the watch tells of another. */
  readonly #written = new Map<string, { readonly over: string | undefined; readonly status: unknown }>();
  #cancel: () => void = () => undefined;
  #isSoon = false;
  #working: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#trouble = new Trouble(options.log);
    const unwatch = options.store.watch((changes) => {
      // Pods and endpoints come and go all the time: what they mean for a resource is told later.
      if (changes.some(({ resource }) => kindDefinitions[resource.kind].writtenBy === "user")) this.#soon();
    });
    this.#ends = [unwatch, options.leadership.follow(() => this.#soon())];
    this.#schedule(laterMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    for (const end of this.#ends) end();
    await this.#working;
  }

  #soon(): void {
    if (this.#isSoon) return;
    this.#isSoon = true;
    this.#schedule(soonMs);
  }

  #schedule(delayMs: number): void {
    this.#cancel();
    if (this.#isClosed) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#isSoon = false;
      this.#working = this.#work().finally(() => {
        if (!this.#isSoon) this.#schedule(laterMs);
      });
    });
  }

  async #work(): Promise<void> {
    // The one before may take longer than the time between two.
    await this.#working;
    if (!this.#options.leadership.isLeader) return this.#written.clear();
    const due = this.#due();
    const worker = async (): Promise<void> => {
      for (let next = due.pop(); next !== undefined && !this.#isClosed; next = due.pop()) await this.#write(...next);
    };
    await Promise.all(Array.from({ length: mostAtOnce }, worker));
  }

  #due(): [FollowedObject, object][] {
    const { store, known, replicas, clock } = this.#options;
    const byKey = (findings: readonly Finding[]): ReadonlyMap<string, readonly Finding[]> =>
      Map.groupBy(
        findings.filter(({ resource }) => resource !== undefined),
        ({ resource }) => keyText(resource!),
      );
    const [findings, setAside, changes] = [byKey(known.findings()), byKey(known.setAside()), known.changes()];
    const objects = store.objects();
    const versions = new Map(objects.map((object) => [idOf(object), object.version]));
    for (const [id, { over }] of this.#written) if (versions.get(id) !== over) this.#written.delete(id);
    return objects.flatMap((object): [FollowedObject, object][] => {
      const { key, isShadowed } = object;
      const isOurs = /(?:^|\.)tulle\.io\//.test(object.apiVersion);
      // Whoever keeps a machine's entry writes its status, too, and of one list there is one writer.
      if (saysHealth(object.status)) return [];
      const there = (this.#written.get(idOf(object)) ?? object).status;
      // Of Istio's groups Istio may write, too: over its words only what it cannot know is said.
      if (!isOurs && !isShadowed && isOfOthers(there)) return [];
      const text = keyText(key);
      const change = changes.get(text);
      const facts = {
        ...object,
        setAside: setAside.get(text) ?? [],
        findings: isShadowed ? [] : (findings.get(text) ?? []),
        refusals: [...known.refusals(key), ...(replicas?.refusalsOf(text) ?? [])],
        sync: replicas === undefined ? change?.sync : replicas.syncOf(text, object.generation, change),
        more: isOurs ? known.more(key) : {},
      };
      const next = objectStatus(facts, there, clock.nowMs());
      return saysSame(there, next) ? [] : [[object, next]];
    });
  }

  async #write(object: FollowedObject, status: object): Promise<void> {
    const { client } = this.#options;
    const { apiVersion, key } = object;
    const { kind, namespace, name } = key;
    const metadata = { name, ...(namespace === "" ? {} : { namespace }) };
    try {
      const path = `${objectPath(apiVersion, kind as Parameters<typeof objectPath>[1], namespace, name)}/status`;
      const body = { apiVersion, kind, metadata, status };
      const answer = await client.apply<{ readonly status?: unknown }>(path, body, fieldManager);
      this.#written.set(idOf(object), { over: object.version, status: answer.status ?? {} });
      this.#trouble.end("statuses are written again");
    } catch (error) {
      // Gone meanwhile; others are tried again with the next look.
      if (error instanceof KubernetesError && error.code === 404) return;
      this.#trouble.begin("a status cannot be written, and is tried again", {
        resource: keyText(key),
        reason: (error as Error).message,
      });
    }
  }
}

function idOf({ apiVersion, key }: FollowedObject): string {
  return `${apiVersion} ${keyText(key)}`;
}

/** Whoever else writes conditions has none of the name that is in each status of ours. */
function isOfOthers(status: unknown): boolean {
  const conditions = conditionsIn(status);
  return conditions.length > 0 && conditions.every(({ type }) => type !== "Accepted");
}

function saysHealth(status: unknown): boolean {
  return conditionsIn(status).some(({ type }) => type === "Healthy");
}
