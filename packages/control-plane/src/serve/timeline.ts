// What was changed in the configuration, and when: the newest changes, kept across restarts. Pods and endpoints come
// and go by themselves; they are counted.
import { isDeepStrictEqual } from "node:util";
import {
  concealSecrets,
  formatPath,
  isKind,
  keyOf,
  keyText,
  kindDefinitions,
  type Finding,
  type MeshResource,
  placeOf,
  type Store,
  type StoreChange,
  type Unwatch,
} from "@tulle/config";
import type { ChangedWhileAway, ChangeSync, FieldChange, RecordedChange } from "@tulle/config/api";
import type { Clock } from "@tulle/timing";
import type { KeptEntries } from "../state/kept-entries.ts";
import { ChangeProgress, type ChangeProgressOptions } from "./change-progress.ts";
import {
  changedWhileAway,
  contentHash,
  maxSeen,
  parseSavedSeen,
  type SavedSeen,
  type SeenObjects,
} from "./seen-configuration.ts";

/** Older ones are forgotten. */
export const maxChanges = 500;
/** Fields told of one change. */
const maxFields = 12;
const maxValueLength = 80;

const hiddenValue = "(hidden)";
/** Names of fields, headers among them, whose values may be secrets wherever they stand. */
const secretName = /authorization|cookie|password|secret|token|api-?key/i;

const platformMetadata: ReadonlySet<string> = new Set([
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "uid",
  "managedFields",
]);

/** Each change by its number, and what it was that they led to: in one file, or a kill could tell of one alone. */
export type SavedChanges = Pick<KeptEntries<RecordedChange | SavedSeen>, "saved" | "save">;
const seenEntry = "seen";

export interface TimelineOptions extends Pick<ChangeProgressOptions, "mesh" | "pusher"> {
  readonly store: Pick<Store, "watch" | "all">;
  readonly findings: () => readonly Finding[];
  readonly kept: SavedChanges;
  readonly clock: Pick<Clock, "nowMs">;
}

export class Timeline {
  readonly #options: TimelineOptions;
  readonly #unwatch: Unwatch;
  readonly #progress: ChangeProgress;
  #changes: readonly RecordedChange[];
  #platformChanges = 0;
  /** What people's objects are now. */
  readonly #seen: Map<string, string>;

  constructor(options: TimelineOptions) {
    this.#options = options;
    const saved = [...options.kept.saved.values()];
    this.#changes = saved
      .filter((value) => "id" in value)
      .toSorted((a, b) => a.id - b.id)
      .map(cutShort);
    const own = options.store.all().filter(isUsers);
    this.#seen = new Map(own.slice(0, maxSeen).map((resource) => [keyText(keyOf(resource)), hashOf(resource)]));
    const before = saved.find((value) => "seen" in value)?.seen;
    if (before !== undefined) this.#recordAway(new Map(Object.entries(before)), own);
    this.#save();
    this.#progress = new ChangeProgress({
      ...options,
      maxBatches: maxChanges,
      onDone: (batch, proxies) => {
        this.#changes = this.#changes.map((change) => (change.batch === batch ? { ...change, proxies } : change));
        this.#save();
      },
    });
    // After the mesh, which knows by then whether it means something for a proxy.
    this.#unwatch = options.store.watch((changes) => this.#record(changes));
  }

  get platformChanges(): number {
    return this.#platformChanges;
  }

  /** Oldest first. */
  since(timeMs: number): readonly RecordedChange[] {
    return this.#changes
      .filter(({ time }) => Date.parse(time) >= timeMs)
      .map((change) => {
        const proxies = change.batch === undefined ? undefined : this.#progress.of(change.batch);
        return proxies === undefined ? change : { ...change, proxies };
      });
  }

  close(): void {
    this.#unwatch();
  }

  /** One entry, however much it was. */
  #recordAway(before: SeenObjects, own: readonly MeshResource[]): void {
    const changed = changedWhileAway(before, this.#seen, own, this.#options.findings());
    if (changed === undefined) return;
    const entry: RecordedChange = {
      id: (this.#changes.at(-1)?.id ?? 0) + 1,
      time: new Date(this.#options.clock.nowMs()).toISOString(),
      kind: "",
      namespace: "",
      name: "",
      type: "away",
      away: changed.objects,
      fields: [],
      moreFields: 0,
      findings: changed.codes,
    };
    this.#changes = [...this.#changes, entry].slice(-maxChanges);
  }

  #see({ type, resource }: StoreChange): void {
    const key = keyText(keyOf(resource));
    if (type === "deleted") this.#seen.delete(key);
    else if (this.#seen.has(key) || this.#seen.size < maxSeen) this.#seen.set(key, hashOf(resource));
  }

  #record(changes: readonly StoreChange[]): void {
    const own = changes.filter(({ resource }) => isUsers(resource));
    this.#platformChanges += changes.length - own.length;
    if (own.length === 0) return;
    for (const change of own) this.#see(change);
    const time = new Date(this.#options.clock.nowMs()).toISOString();
    const codes = Map.groupBy(
      this.#options.findings().filter(({ resource }) => resource !== undefined),
      ({ resource }) => keyText(resource!),
    );
    let id = this.#changes.at(-1)?.id ?? 0;
    const batch = (this.#changes.findLast((change) => change.batch !== undefined)?.batch ?? 0) + 1;
    const recorded = own.flatMap((change): readonly RecordedChange[] => {
      const fields = fieldChanges(change);
      if (change.type === "modified" && fields.length === 0) return [];
      id += 1;
      const { resource, by } = change;
      const { kind, namespace, name } = keyOf(resource);
      const place = placeOf(resource);
      return [
        {
          id,
          time,
          kind,
          namespace,
          name,
          type: change.type,
          ...(place !== undefined && { file: `${place.file}:${place.line}` }),
          fields: fields.slice(0, maxFields),
          moreFields: Math.max(0, fields.length - maxFields),
          findings: (codes.get(keyText(keyOf(resource))) ?? []).map(({ code }) => code),
          ...(by !== undefined && { by }),
          batch,
        },
      ];
    });
    if (recorded.length === 0) return;
    const proxies = this.#progress.begin(batch);
    const told = proxies === undefined ? recorded : recorded.map((change) => ({ ...change, proxies }));
    this.#changes = [...this.#changes, ...told].slice(-maxChanges);
    this.#save();
  }

  #save(): void {
    const entries = new Map<string, RecordedChange | SavedSeen>(
      this.#changes.map((change) => [String(change.id), change]),
    );
    entries.set(seenEntry, { seen: Object.fromEntries(this.#seen) });
    this.#options.kept.save(entries);
  }
}

/** Of an earlier run, which followed it no further. */
function cutShort(change: RecordedChange): RecordedChange {
  const { proxies } = change;
  if (proxies === undefined || proxies.tookMs !== undefined) return change;
  return { ...change, proxies: { ...proxies, isCutShort: true } };
}

/** What people write; the rest the platform publishes. */
function isUsers({ kind }: MeshResource): boolean {
  return isKind(kind) && kindDefinitions[kind].writtenBy === "user";
}

function fieldChanges({ type, resource, previous }: StoreChange): readonly FieldChange[] {
  if (type !== "modified" || previous === undefined) return [];
  const fields: FieldChange[] = [];
  compare(shown(previous), shown(resource), [], fields);
  const hidden = resource.kind === "Secret" && fields.length === 0;
  return hidden ? [{ path: "data", before: hiddenValue, after: hiddenValue }] : fields;
}

/** Without secrets. */
function shown(resource: MeshResource): unknown {
  return written(concealSecrets(resource));
}

function hashOf(resource: MeshResource): string {
  return contentHash(written(resource));
}

/** Without what the platform writes. */
function written(resource: MeshResource): unknown {
  const { status: _status, metadata, ...rest } = resource as MeshResource & { readonly status?: unknown };
  const own = Object.entries(metadata).filter(([key]) => !platformMetadata.has(key));
  return { ...rest, metadata: Object.fromEntries(own) };
}

type Path = readonly (string | number)[];

function compare(before: unknown, after: unknown, path: Path, fields: FieldChange[]): void {
  if (isDeepStrictEqual(before, after)) return;
  if (isTree(before) && isTree(after) && Array.isArray(before) === Array.isArray(after)) {
    const isList = Array.isArray(before);
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(before[key], after[key], [...path, isList ? Number(key) : key], fields);
    }
    return;
  }
  const of = (value: unknown): string => valueText(value, path);
  fields.push({
    path: formatPath(path),
    ...(before !== undefined && { before: of(before) }),
    ...(after !== undefined && { after: of(after) }),
  });
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function valueText(value: unknown, path: Path): string {
  if (path.some((step) => typeof step === "string" && secretName.test(step))) return hiddenValue;
  const text = JSON.stringify(value, (key, each: unknown) => (secretName.test(key) ? hiddenValue : each));
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text;
}

/** Of an earlier run; undefined for what is neither. */
export function parseSavedChange(value: unknown): RecordedChange | SavedSeen | undefined {
  return parseSavedSeen(value) ?? parseRecordedChange(value);
}

function parseRecordedChange(value: unknown): RecordedChange | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const change = value as Partial<RecordedChange>;
  const { id, time, kind, namespace, name, type, away, fields, findings, batch, proxies } = change;
  const hasTexts = [time, kind, namespace, name, type].every((each) => typeof each === "string");
  const hasLists = Array.isArray(fields) && Array.isArray(findings);
  if (type === "away" && !isAway(away)) return undefined;
  const isWhole = typeof id === "number" && hasTexts && hasLists && ["number", "undefined"].includes(typeof batch);
  return isWhole && (proxies === undefined || isSync(proxies)) ? (value as RecordedChange) : undefined;
}

function isAway(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { named, more } = value as Partial<ChangedWhileAway>;
  return Array.isArray(named) && Number.isFinite(more);
}

function isSync(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { connected, inSync, refusing, revisions = [] } = value as Partial<ChangeSync>;
  return [connected, inSync, refusing].every(Number.isFinite) && Array.isArray(revisions);
}
