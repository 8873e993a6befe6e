// How the supervisor starts its control plane, and the two questions that it asks it besides the resource API.
import { isIP, isIPv6 } from "node:net";
import { type ApiClient } from "@tulle/config";
import { endpoints, type ProxySync } from "@tulle/config/api";
import { CannotStart } from "./cannot-start.ts";
import { closeSocket, SystemCallFailed } from "./network/libc.ts";
import type { Address, BoundPort, MeshNetwork } from "./network/pod-network.ts";
import { inheritedEnvironment } from "./pod/environment.ts";
import type { ProcessSpec, RestartPolicy } from "./process/supervised-process.ts";
import type { StateDirectory } from "./state-directory.ts";

/** Istio's port of a control plane for proxies with certificates. */
export const xdsPort = 15_012;
export const apiPort = 15_014;
/** These questions are asked again and again: a control plane that hangs is not waited for. */
const questionTimeoutMs = 2000;

/** Where machines join. */
export interface JoinPort {
  readonly address: Address;
  /** Undefined where the control plane listens there itself. */
  readonly bound: BoundPort | undefined;
}

interface JoinOptions {
  readonly joinAddress?: Address | undefined;
  readonly controlPlaneOptions?: readonly string[];
}

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
  readonly join: JoinPort | undefined;
  readonly clusterId: string;
  /** Names this run of the supervisor. */
  readonly owner: string;
  readonly restart: RestartPolicy;
  readonly logFile: string;
}

export function controlPlaneSpec(settings: ControlPlaneSettings): ProcessSpec {
  const { state, address, join } = settings;
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
        ...joinOptions(settings),
        ...settings.options,
        ...(settings.fresh ? ["--fresh"] : []),
      ],
      env: {
        ...inheritedEnvironment(settings.env, settings.nodePath),
        NODE_COMPILE_CACHE: settings.tulleCompileCache,
      },
    }),
    logFile: settings.logFile,
    listenDescriptors: join?.bound === undefined ? [] : [[join.address.port, join.bound.descriptor]],
    restart: settings.restart,
  };
}

/** @throws {CannotStart} */
export function openJoinPort(
  { joinAddress: address, controlPlaneOptions = [] }: JoinOptions,
  network: MeshNetwork,
): JoinPort | undefined {
  if (address === undefined) return undefined;
  if (network.bindJoinPort === undefined) return { address, bound: undefined };
  const where = hostPortText(address);
  if (isIP(address.host) === 0 || address.port === 0) {
    throw new CannotStart(
      `machines cannot join at ${where}`,
      "With --mode namespaces --join-address takes an IP address and a port.",
    );
  }
  try {
    const bound = network.bindJoinPort(address);
    if (bound?.reachedAt.length === 0 && !isAdvertised(controlPlaneOptions)) {
      closeSocket(bound.descriptor);
      throw new CannotStart(
        `machines cannot join at ${where}: this machine has no address that others reach`,
        "Say how they get there by --join-advertise.",
      );
    }
    return { address, bound };
  } catch (error) {
    if (!(error instanceof SystemCallFailed)) throw error;
    throw new CannotStart(
      `machines cannot join at ${where}: ${error.code}`,
      "Name an address of this machine and a port that is free, or all addresses by 0.0.0.0.",
    );
  }
}

function joinOptions({ join, options }: ControlPlaneSettings): readonly string[] {
  if (join === undefined) return [];
  const { address, bound } = join;
  const reachedAt = isAdvertised(options) ? [] : (bound?.reachedAt ?? []);
  return ["--join-address", hostPortText(address), ...reachedAt.flatMap((each) => ["--join-advertise", each])];
}

/** Whether tokens are told by `options` where machines get to. */
function isAdvertised(options: readonly string[]): boolean {
  return options.includes("--join-advertise");
}

function hostPortText({ host, port }: Address): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
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
