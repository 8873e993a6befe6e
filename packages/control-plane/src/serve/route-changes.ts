// What a push tells whoever follows it; and which routes it makes others, found once for all proxies that had, and get,
// the same.
import type { RouteRevision } from "@tulle/config/api";
import type { AdsConnection } from "@tulle/xds";
import type { Keyed } from "../scope/keyed.ts";
import type { RoutesSection } from "../scope/proxy-view.ts";
import { changedRevisions } from "../translate/route-revisions.ts";
import type { TranslationCache } from "./translation-cache.ts";

export interface PushFollower {
  /** A proxy has all that was meant for it, or has gone. */
  readonly settled: (connection: AdsConnection) => void;
  /** A proxy is sent other routes. */
  readonly rerouted: (connection: AdsConnection, revisions: () => readonly RouteRevision[]) => void;
}

export class RouteChanges {
  readonly #cache: Pick<TranslationCache, "routes">;
  readonly #known = new Map<string, readonly RouteRevision[]>();

  constructor(cache: Pick<TranslationCache, "routes">) {
    this.#cache = cache;
  }

  /** The cache forgets the routes before once every proxy has what is new. */
  between(before: Keyed<RoutesSection>, after: Keyed<RoutesSection>): readonly RouteRevision[] {
    const key = `${before.key} ${after.key}`;
    let changed = this.#known.get(key);
    if (changed === undefined) {
      changed = changedRevisions(this.#cache.routes(before), this.#cache.routes(after));
      this.#known.set(key, changed);
    }
    return changed;
  }

  forget(): void {
    this.#known.clear();
  }
}
