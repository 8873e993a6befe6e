// Open watches: newline-delimited events to each watcher, from the version that it knows, with bookmarks while it is
// quiet.
import { type Kind, type Store, type StoreChange } from "@tulle/config";
import { bookmarkIntervalMs, type WatchEvent } from "@tulle/config/api";
import { ApiFailure } from "./api-failure.ts";
import type { EventStream } from "./event-stream.ts";
import type { Transport } from "./routes.ts";

/** For each way in, so that none takes another's places. */
const maxWatchers = 256;

export class WatchStreams {
  readonly #store: Store;
  readonly #open = new Map<EventStream<WatchEvent>, Transport>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Without a version the watcher is told everything that is there. @throws {ApiFailure} */
  open(
    stream: EventStream<WatchEvent>,
    kinds: ReadonlySet<Kind>,
    resourceVersion: number | undefined,
    transport: Transport,
  ): void {
    const sameWay = this.#open.values().filter((each) => each === transport);
    if (sameWay.toArray().length >= maxWatchers) throw new ApiFailure(503, `more than ${maxWatchers} watchers`);
    const wanted = ({ resource }: Pick<StoreChange, "resource">): boolean =>
      kinds.size === 0 || kinds.has(resource.kind);
    const first = this.#firstChanges(resourceVersion).filter(wanted);
    const tell = (changes: readonly StoreChange[]): void => stream.send(changes.filter(wanted).map(eventOf));
    tell(first);
    this.#bookmark(stream);
    const unwatch = this.#store.watch(tell);
    const timer = setInterval(() => this.#bookmark(stream), bookmarkIntervalMs);
    this.#open.set(stream, transport);
    stream.onClose(() => {
      unwatch();
      clearInterval(timer);
      this.#open.delete(stream);
    });
  }

  close(): void {
    for (const stream of this.#open.keys()) stream.end();
  }

  #firstChanges(resourceVersion: number | undefined): readonly StoreChange[] {
    const now = this.#store.resourceVersion;
    if (resourceVersion === undefined) {
      return this.#store.all().map((resource) => ({ type: "added", resource, resourceVersion: now }));
    }
    const changes = this.#store.changesSince(resourceVersion);
    if (changes === undefined) throw new ApiFailure(410, `changes since ${resourceVersion} are not kept: list again`);
    return changes;
  }

  #bookmark(stream: EventStream<WatchEvent>): void {
    stream.send([{ type: "bookmark", resourceVersion: this.#store.resourceVersion }]);
  }
}

function eventOf({ type, resource, resourceVersion }: StoreChange): WatchEvent {
  return { type, resourceVersion, resource };
}
