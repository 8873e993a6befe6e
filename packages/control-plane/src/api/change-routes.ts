// The timeline of changes over HTTP, with how far the proxies are.
import type { changeEndpoints } from "@tulle/config/api";
import { statusTypes } from "@tulle/config/api";
import type { ConnectedProxy } from "../serve/pusher.ts";
import type { Timeline } from "../serve/timeline.ts";
import { ApiFailure } from "./api-failure.ts";
import type { Handlers } from "./routes.ts";
import { syncStatus } from "./sync-status.ts";

export interface ChangeRoutesOptions {
  readonly timeline: Pick<Timeline, "since" | "platformChanges">;
  readonly pusher: { readonly connected: readonly ConnectedProxy[] };
}

export function changeRoutes({ timeline, pusher }: ChangeRoutesOptions): Handlers<typeof changeEndpoints> {
  return {
    changes: ({ query }) => {
      const since = query.get("since");
      const sinceMs = since === null ? 0 : Date.parse(since);
      if (Number.isNaN(sinceMs))
        throw new ApiFailure(400, `since is a time such as 2026-11-24T18:00:00Z, not ${since}`);
      const proxies = syncStatus(pusher.connected, "", false);
      const inSync = proxies.filter(({ types }) =>
        statusTypes.every((type) => types[type].state === "SYNCED" || types[type].state === "NOT SENT"),
      );
      return {
        status: 200,
        json: {
          changes: timeline.since(sinceMs),
          platformChanges: timeline.platformChanges,
          proxies: { connected: proxies.length, inSync: inSync.length },
        },
      };
    },
  };
}
