// Open watches: newline-delimited events to each watcher, from the version that it knows, with bookmarks while it is quiet.
import type { ServerResponse } from "node:http";
import {
  bookmarkIntervalMs,
  type Kind,
  type Store,
  type StoreChange,
  watchContentType,
  type WatchEvent,
} from "@tulle/config";
import { ApiFailure, type Transport } from "./http-api.ts";

/** For each way in, so that none takes another's places. */
const maxWatchers = 256;
/** A watcher that reads slower than the mesh changes is cut off at this backlog; it comes back and lists anew. */
const maxBacklogBytes = 16 * 1024 * 1024;

export class WatchStreams {
  readonly #store: Store;
  readonly #open = new Map<ServerResponse, Transport>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Takes the response over. Without a version the watcher is told everything that is there. @throws {ApiFailure} */
  open(
    response: ServerResponse,
    kinds: ReadonlySet<Kind>,
    resourceVersion: number | undefined,
    transport: Transport,
  ): void {
    const sameWay = this.#open.values().filter((each) => each === transport);
    if (sameWay.toArray().length >= maxWatchers) throw new ApiFailure(503, `more than ${maxWatchers} watchers`);
    const wanted = ({ resource }: Pick<StoreChange, "resource">): boolean =>
      kinds.size === 0 || kinds.has(resource.kind);
    const first = this.#firstChanges(resourceVersion).filter(wanted);
    response.writeHead(200, { "content-type": watchContentType });
    const tell = (changes: readonly StoreChange[]): void => {
      const text = changes.filter(wanted).map(eventLine).join("");
      if (text !== "") this.#write(response, text);
    };
    tell(first);
    this.#bookmark(response);
    const unwatch = this.#store.watch(tell);
    const timer = setInterval(() => this.#bookmark(response), bookmarkIntervalMs);
    this.#open.set(response, transport);
    response.on("close", () => {
      unwatch();
      clearInterval(timer);
      this.#open.delete(response);
    });
  }

  close(): void {
    for (const response of this.#open.keys()) response.end();
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

  #bookmark(response: ServerResponse): void {
    const event: WatchEvent = { type: "bookmark", resourceVersion: this.#store.resourceVersion };
    this.#write(response, `${JSON.stringify(event)}\n`);
  }

  #write(response: ServerResponse, text: string): void {
    if (response.writableLength + text.length > maxBacklogBytes) response.destroy();
    else response.write(text);
  }
}

function eventLine({ type, resource, resourceVersion }: StoreChange): string {
  const event: WatchEvent = { type, resourceVersion, resource };
  return `${JSON.stringify(event)}\n`;
}
