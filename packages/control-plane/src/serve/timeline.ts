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
import type { ChangeSync, FieldChange, RecordedChange } from "@tulle/config/api";
import type { Clock } from "@tulle/timing";
import type { KeptEntries } from "../state/kept-entries.ts";
import { ChangeProgress, type ChangeProgressOptions } from "./change-progress.ts";

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

export type SavedChanges = Pick<KeptEntries<RecordedChange>, "saved" | "save">;

export interface TimelineOptions extends Pick<ChangeProgressOptions, "mesh" | "pusher"> {
  readonly store: Pick<Store, "watch">;
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

  constructor(options: TimelineOptions) {
    this.#options = options;
    this.#changes = [...options.kept.saved.values()].toSorted((a, b) => a.id - b.id).map(cutShort);
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

  #record(changes: readonly StoreChange[]): void {
    const own = changes.filter(({ resource }) => isUsers(resource));
    this.#platformChanges += changes.length - own.length;
    if (own.length === 0) return;
    const time = new Date(this.#options.clock.nowMs()).toISOString();
    const codes = Map.groupBy(
      this.#options.findings().filter(({ resource }) => resource !== undefined),
      ({ resource }) => keyText(resource!),
    );
    let id = this.#changes.at(-1)?.id ?? 0;
    const batch = (this.#changes.at(-1)?.batch ?? 0) + 1;
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
    this.#options.kept.save(new Map(this.#changes.map((change) => [String(change.id), change])));
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

/** Without what the platform writes, and without secrets. */
function shown(resource: MeshResource): unknown {
  const {
    status: _status,
    metadata,
    ...rest
  } = concealSecrets(resource) as MeshResource & { readonly status?: unknown };
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

/** Of an earlier run; undefined for what is none. */
export function parseRecordedChange(value: unknown): RecordedChange | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { id, time, kind, namespace, name, type, fields, findings, batch, proxies } = value as Partial<RecordedChange>;
  const hasTexts = [time, kind, namespace, name, type].every((each) => typeof each === "string");
  const hasLists = Array.isArray(fields) && Array.isArray(findings);
  const isWhole = typeof id === "number" && hasTexts && hasLists && ["number", "undefined"].includes(typeof batch);
  return isWhole && (proxies === undefined || isSync(proxies)) ? (value as RecordedChange) : undefined;
}

function isSync(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { connected, inSync, refusing, revisions = [] } = value as Partial<ChangeSync>;
  return [connected, inSync, refusing].every(Number.isFinite) && Array.isArray(revisions);
}
