// Runs Tulle's proxy in the agent's own process: one process a pod, one memory of it.
import { Counter } from "@tulle/telemetry";
import { joined, runInSlices } from "@tulle/timing";
import { type StartDataPlane, takenStats } from "./data-plane.ts";

export const startTulle: StartDataPlane = async ({ settings, bootstrap, env, logging }) => {
  // Loaded only when it is wanted: an agent beside Envoy has no use for it.
  const { runProxy } = await import("@tulle/proxy");
  const { concurrency, logLevel, listenerDrainMs, ownUserPorts, ownUserRange } = settings;
  const proxy = await runProxy({
    bootstrap,
    concurrency,
    logLevel,
    logging,
    env,
    drainTimeMs: listenerDrainMs,
    ownUserPorts,
    ownUserRange,
  });
  // Whether it is ready is asked each time.
  proxy.ready.catch(() => undefined);
  // Asked by a call, where Envoy is asked over its admin port: others may crowd a port.
  return {
    ended: proxy.ended,
    isReady: () => Promise.resolve(proxy.isReady()),
    metrics: async (format) => {
      const text = await runInSlices(joined(proxy.metrics.pieces({ format, isPart: true })));
      return { format, text };
    },
    taken: () => {
      let taken = 0;
      for (const { statName, metric } of proxy.metrics.allSeries())
        if (statName !== undefined && metric instanceof Counter && takenStats.test(statName)) taken += metric.value;
      return Promise.resolve(taken);
    },
    stop: (times) => proxy.stop(times),
  };
};
