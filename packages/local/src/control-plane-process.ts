// How the supervisor starts its control plane, and the two questions that it asks it besides the resource API.
import { type ApiClient } from "@tulle/config";
import { endpoints, type ProxySync } from "@tulle/config/api";
import { inheritedEnvironment } from "./pod/environment.ts";
import type { ProcessSpec, RestartPolicy } from "./process/supervised-process.ts";
import type { StateDirectory } from "./state-directory.ts";

/** Istio's port of a control plane for proxies with certificates. */
export const xdsPort = 15_012;
export const apiPort = 15_014;
/** These questions are asked again and again: a control plane that hangs is not waited for. */
const questionTimeoutMs = 2000;

export interface ControlPlaneSettings {
  readonly state: StateDirectory;
  readonly address: string;
  /** More arguments, of the network that pods are in. */
  readonly networkArguments: readonly string[];
  readonly tulleCommand: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly nodePath: string;
  readonly tulleCompileCache: string;
  readonly fresh: boolean;
  /** Further options of `tulle control-plane`. */
  readonly options: readonly string[];
  readonly clusterId: string;
  /** Names this run of the supervisor. */
  readonly owner: string;
  readonly restart: RestartPolicy;
  readonly logFile: string;
}

export function controlPlaneSpec(settings: ControlPlaneSettings): ProcessSpec {
  const { state, address } = settings;
  return {
    name: "control plane",
    cwd: state.dir,
    launch: () => ({
      argv: [
        ...settings.tulleCommand,
        "control-plane",
        "--manifests",
        state.dir,
        "--state",
        state.path,
        // Everybody here has a certificate, or gets one: nothing is served without.
        "--no-xds",
        "--xds-tls",
        `${address}:${xdsPort}`,
        "--http",
        `${address}:${apiPort}`,
        "--cluster-id",
        settings.clusterId,
        // The same across restarts of the control plane, so that it keeps the pods that go on running.
        "--owner",
        settings.owner,
        ...settings.networkArguments,
        ...settings.options,
        ...(settings.fresh ? ["--fresh"] : []),
      ],
      env: {
        ...inheritedEnvironment(settings.env, settings.nodePath),
        NODE_COMPILE_CACHE: settings.tulleCompileCache,
      },
    }),
    logFile: settings.logFile,
    restart: settings.restart,
  };
}

/**
 * Whether every one of `proxies` (`<pod>.<namespace>`) is connected and has acknowledged, or refused, all that follows
 * from what the store holds now.
 */
export async function allAcknowledged(api: ApiClient, proxies: readonly string[]): Promise<boolean> {
  // Asked first: what is gathered and not declared yet shows in no proxy's state.
  const { pending } = await api.call(endpoints.pending, {}, { timeoutMs: questionTimeoutMs });
  if (pending) return false;
  const rows = new Map((await syncRows(api)).map((row) => [row.proxy, row]));
  return proxies.every((name) => {
    const states = Object.values(rows.get(name)?.types ?? {}).map(({ state }) => state);
    return states.some((state) => state !== "NOT SENT") && !states.includes("STALE");
  });
}

/** What proxies have refused, one text each. */
export async function refusals(api: ApiClient): Promise<readonly string[]> {
  return (await syncRows(api)).flatMap(({ proxy, types }) =>
    Object.entries(types).flatMap(([type, { errors }]) =>
      errors.map(({ message }) => `${proxy} refused ${type}: ${message}`),
    ),
  );
}

function syncRows(api: ApiClient): Promise<readonly ProxySync[]> {
  return api.call(endpoints.syncStatus, {}, { timeoutMs: questionTimeoutMs });
}
