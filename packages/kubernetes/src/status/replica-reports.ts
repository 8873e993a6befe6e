// A proxy has its stream at one replica of the control plane, and one replica writes statuses. The others tell it what
// has become of resources at their proxies, each under a key of its own in one ConfigMap: of recent changes, and only
// what differs from what stands there.
import { keyText, kindDefinitions, type ResourceKey, type Store, type Unwatch } from "@tulle/config";
import { type Logger, Trouble } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { type KubernetesObject, ObjectFollower } from "../follow/object-follower.ts";
import { reportsConfigMap } from "../names.ts";
import type { FollowedObject } from "../store/kubernetes-store.ts";
import type { ProxiesInSync } from "./object-status.ts";

/** The newest change of a resource. */
export interface KnownChange {
  readonly changedAtMs: number;
  /** Undefined where it means nothing for a proxy, or nobody counts any more. */
  readonly sync: ProxiesInSync | undefined;
}

/** What one replica knows of one version of a resource. */
interface Row {
  readonly generation: number;
  readonly sync?: ProxiesInSync | undefined;
  readonly refusals?: readonly string[];
}

/** By `keyText`. */
type Rows = Readonly<Record<string, Row>>;

export interface ReplicaReportsOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** The pod's name. */
  readonly own: string;
  readonly isAlive: (name: string) => boolean;
  readonly store: Pick<Store, "watch"> & { objects(): readonly FollowedObject[] };
  readonly known: {
    changes(): ReadonlyMap<string, KnownChange>;
    refusals(key: ResourceKey): readonly string[];
  };
  readonly leadership: { readonly isLeader: boolean; readonly follow: (listener: () => void) => () => void };
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

/**
 * Told by a replica: the newest changes, and what is refused, some 150 KB at the most. An object of Kubernetes has room
 * for a megabyte, in which all replicas have theirs.
 */
const maxRows = 200;
const maxRefusals = 2;
const maxRefusalCharacters = 200;
/** How soon a change is told, and how often it is looked whether proxies have answered. */
const soonMs = 1_000;
const laterMs = 10_000;
/** So long is waited for a replica's word on a change; one that has begun after it has none. */
const settleMs = 20_000;

interface ReportsMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

export class ReplicaReports {
  readonly #options: ReplicaReportsOptions;
  readonly #path: string;
  readonly #follower: ObjectFollower;
  readonly #trouble: Trouble;
  readonly #ends: readonly Unwatch[];
  /** Of each replica but this. */
  #reports: ReadonlyMap<string, Rows> = new Map();
  /** Whose reports stand there. */
  #names: readonly string[] = [];
  /** This one's, as it stands there. */
  #told: string | undefined;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(options: ReplicaReportsOptions) {
    const { client, namespace, clock, log, random = Math.random, leadership, store } = options;
    this.#options = options;
    this.#trouble = new Trouble(log);
    const collection = `/api/v1/namespaces/${namespace}/configmaps`;
    this.#path = `${collection}/${reportsConfigMap}`;
    this.#follower = new ObjectFollower({
      client,
      clock,
      random,
      log,
      apiVersion: "v1",
      kind: "ConfigMap",
      path: collection,
      query: { fieldSelector: `metadata.name=${reportsConfigMap}` },
      onList: ([object]) => this.#read(object),
      onChange: (type, object) => this.#read(type === "DELETED" ? undefined : object),
    });
    this.#follower.start().catch(() => undefined);
    const unwatch = store.watch((changes) => {
      if (changes.some(({ resource }) => kindDefinitions[resource.kind].writtenBy === "user")) this.#schedule(soonMs);
    });
    this.#ends = [unwatch, leadership.follow(() => this.#schedule(soonMs))];
    this.#schedule(soonMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    for (const end of this.#ends) end();
    await this.#follower.close();
  }

  /** Over all replicas: done when each has told that it is, or had its time to. */
  syncOf(text: string, generation: number, own: KnownChange | undefined): ProxiesInSync | undefined {
    const rows = [...this.#reports.values()].flatMap(({ [text]: row }) => (row?.generation === generation ? row : []));
    const syncs = [own, ...rows].flatMap((each) => each?.sync ?? []);
    if (syncs.length === 0) return undefined;
    const isAwaited = own !== undefined && this.#options.clock.nowMs() - own.changedAtMs < settleMs;
    return {
      connected: syncs.reduce((sum, { connected }) => sum + connected, 0),
      inSync: syncs.reduce((sum, { inSync }) => sum + inSync, 0),
      isDone: syncs.every(({ isDone }) => isDone) && (!isAwaited || rows.length === this.#reports.size),
    };
  }

  refusalsOf(text: string): readonly string[] {
    return [...this.#reports.values()].flatMap(({ [text]: row }) => row?.refusals ?? []);
  }

  #read(object: ReportsMap | undefined): void {
    const { own, isAlive } = this.#options;
    const entries = Object.entries(object?.data ?? {});
    this.#names = entries.map(([name]) => name);
    this.#told = object?.data?.[own];
    this.#reports = new Map(
      entries.filter(([name]) => name !== own && isAlive(name)).map(([name, text]) => [name, readRows(text)]),
    );
  }

  #schedule(delayMs: number): void {
    this.#cancel();
    if (this.#isClosed) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      void this.#look().then((isOpen) => this.#schedule(isOpen ? soonMs : laterMs));
    });
  }

  /** Whether somebody has yet to answer. */
  async #look(): Promise<boolean> {
    const { leadership, client, own, namespace } = this.#options;
    try {
      if (leadership.isLeader) {
        await this.#forgetOthers();
        return false;
      }
      const rows = this.#rows();
      const text = JSON.stringify(rows);
      if (text !== this.#told) {
        const body = {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: reportsConfigMap, namespace },
          data: { [own]: text },
        };
        await client.apply(this.#path, body, `tulle-${own}`);
        this.#told = text;
      }
      this.#trouble.end("what proxies have is told again");
      return Object.values(rows).some(({ sync }) => sync?.isDone === false);
    } catch (error) {
      this.#trouble.begin("what this replica's proxies have cannot be told, and is tried again", {
        reason: (error as Error).message,
      });
      return true;
    }
  }

  #rows(): Rows {
    const { store, known } = this.#options;
    const changes = known.changes();
    const rows: [changedAtMs: number, text: string, row: Row][] = [];
    for (const { key, generation, isShadowed } of store.objects()) {
      if (isShadowed) continue;
      const text = keyText(key);
      const change = changes.get(text);
      const refusals = known
        .refusals(key)
        .slice(0, maxRefusals)
        .map((refusal) => refusal.slice(0, maxRefusalCharacters));
      if (change === undefined && refusals.length === 0) continue;
      const told = refusals.length === 0 ? {} : { refusals };
      rows.push([change?.changedAtMs ?? 0, text, { generation, sync: change?.sync, ...told }]);
    }
    const newest = rows.toSorted(([a], [b]) => b - a).slice(0, maxRows);
    return Object.fromEntries(newest.map(([, text, row]) => [text, row]));
  }

  /** What stands there of replicas that have gone, and of this one, which speaks by statuses now. */
  async #forgetOthers(): Promise<void> {
    const { client, own, isAlive } = this.#options;
    const gone = this.#names.filter((name) => name === own || !isAlive(name));
    if (gone.length === 0) return;
    const body = { data: Object.fromEntries(gone.map((name) => [name, null])) };
    await client.request({ method: "PATCH", path: this.#path, contentType: "application/merge-patch+json", body });
  }
}

/** Of another version of the control plane, perhaps: what cannot be read says nothing. */
function readRows(text: string): Rows {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Rows) : {};
  } catch {
    return {};
  }
}
