// What a supervisor writes down of itself at its start, for commands that look for it.
import { apiPort, xdsPort } from "./control-plane-process.ts";
import { developmentRootFile } from "./development-certificate.ts";
import type { Instance } from "./instance.ts";

export interface DescribedOptions {
  readonly dir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Missing in loopback mode. */
  readonly ownNetwork?: unknown;
}

/** `address` is the control plane's. */
export function describeInstance(
  { dir, env, ownNetwork }: DescribedOptions,
  stateDir: string,
  address: string,
  startTime: string,
): Instance {
  return {
    dir,
    stateDir,
    pid: process.pid,
    pidStartTime: startTime,
    apiUrl: `http://${address}:${apiPort}`,
    xdsAddress: `${address}:${xdsPort}`,
    publishedPorts: [],
    ...(ownNetwork === undefined ? {} : { mode: "namespaces" }),
    ready: false,
    startedAt: new Date().toISOString(),
    developmentRootFile: developmentRootFile(env),
  };
}
