// Runs Tulle's proxy in the agent's own process: one process a pod, one memory of it.
import { peerMetadataVariable } from "../bootstrap/peer-metadata.ts";
import type { RunProxy, StartDataPlane } from "./data-plane.ts";

export const startTulle: StartDataPlane = async ({ settings, bootstrap, env, logging }) => {
  // `%ENVIRONMENT(…)%` reads the process's environment, as in Envoy.
  process.env[peerMetadataVariable] = env[peerMetadataVariable];
  const proxy = (await import("@tulle/proxy")) as unknown as { readonly runProxy: RunProxy };
  return proxy.runProxy({ bootstrap, concurrency: settings.concurrency, logLevel: settings.logLevel, logging, env });
};
