// A control plane over a folder of manifests and what is applied above it: opens its state and its store, runs it
// with both, and closes them after it.
import { systemClock } from "@tulle/timing";
import { analyze, type Store } from "@tulle/config";
import { Logging } from "@tulle/telemetry";
import { type ControlPlaneOptions, type RunningControlPlane, runControlPlane } from "./run-control-plane.ts";
import { StateFolder } from "./state/state-folder.ts";
import { LayeredStore } from "./stores/layered-store.ts";

export interface ManifestControlPlaneOptions extends Omit<ControlPlaneOptions, "store" | "state"> {
  /** Folder of manifests, read without its sub-folders and watched; none when resources come over the API alone. */
  readonly directory?: string;
  /** Where applied resources lie, beside the control plane's own state. Made when missing. */
  readonly stateDirectory: string;
  /** Forget what was applied before, and the keys of issuers that were fetched. */
  readonly fresh?: boolean;
  /** Whoever runs the pods; see `LayeredStoreOptions.runtimeOwner`. */
  readonly runtimeOwner?: string;
  /** Services that name no address get one of these, a range of each family at the most; none get one when missing. */
  readonly clusterRanges?: readonly string[];
  /** How pods reach each other; it decides on what the analysis looks at. */
  readonly networkMode?: "loopback" | "namespaces";
}

export interface RunningManifestControlPlane extends RunningControlPlane {
  readonly store: Store;
}

/** As `runControlPlane`; rejects when the folder cannot be read, too. */
export async function runManifestControlPlane(
  options: ManifestControlPlaneOptions,
): Promise<RunningManifestControlPlane> {
  const { directory, stateDirectory, fresh = false, runtimeOwner = "", clusterRanges } = options;
  const { networkMode = "loopback" } = options;
  const { clock = systemClock, logging = new Logging() } = options;
  const log = logging.logger("control-plane");
  const hasAuthority = options.xdsTlsAddress !== undefined || options.joinAddress !== undefined;
  // Before anything in it is read: nobody else may reach it from here on.
  const state = new StateFolder(stateDirectory, log);
  const store = await LayeredStore.open({
    folder: directory,
    stateDirectory,
    fresh,
    runtimeOwner,
    clusterRanges,
    analyze: (resources, { drafts }) => analyze(resources, { drafts, networkMode, hasAuthority }),
    clock,
    log,
  });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => store.close());
  const running = await runControlPlane({ ...options, store, state, clock, logging });
  opened.defer(() => running.close());
  const open = opened.move();
  return { ...running, store, close: () => open.disposeAsync() };
}
