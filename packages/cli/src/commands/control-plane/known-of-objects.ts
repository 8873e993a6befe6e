// What a running control plane knows of its resources, as whoever writes their statuses asks for it.
import { keyText, type ResourceKey } from "@tulle/config";
import type { ChangeSync } from "@tulle/config/api";
import type { RunningControlPlane } from "@tulle/control-plane";
import type { KnownChange, ProxiesInSync, StatusWriterOptions } from "@tulle/kubernetes";

/** Of a roll-out that is under way: more is told by `tulle rollout`. */
const rolloutFields = ["phase", "weight", "revision", "step"] as const;

export function knownOfObjects(running: RunningControlPlane): StatusWriterOptions["known"] {
  const { stages, timeline } = running;
  return {
    findings: () => running.findings(),
    setAside: () => stages.accepted.findings,
    changes: () => {
      const changes = new Map<string, KnownChange>();
      // The oldest first: of one object the newest stays.
      for (const { kind, namespace, name, time, proxies } of timeline.since(0)) {
        if (kind === "") continue;
        const isCounted = proxies !== undefined && proxies.isCutShort !== true;
        changes.set(keyText({ kind, namespace, name }), {
          changedAtMs: Date.parse(time),
          sync: isCounted ? syncOf(proxies) : undefined,
        });
      }
      return changes;
    },
    refusals: (key) =>
      (stages.statusOf(key)?.rejections ?? []).map(
        ({ proxy, type, resource, message }) => `${proxy} refuses ${type} ${resource}: ${message.trim()}`,
      ),
    more: (key: ResourceKey) => {
      const rollout = stages.statusOf(key)?.rollout;
      if (rollout === undefined) return {};
      const told = rolloutFields.map((name) => [name, (rollout as Readonly<Record<string, unknown>>)[name]] as const);
      return Object.fromEntries(told.filter(([, value]) => value !== undefined));
    },
  };
}

function syncOf({ connected, inSync, tookMs }: ChangeSync): ProxiesInSync {
  return { connected, inSync, isDone: tookMs !== undefined };
}
