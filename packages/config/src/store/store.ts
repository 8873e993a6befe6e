/**
 * The store: where the mesh's resources are read and watched. Memory, files and a Kubernetes informer all fit it,
 * because reads are synchronous (from a cache) and only writes travel.
 */
import type { Finding } from "../findings/finding.ts";
import type { Kind } from "../kinds/kinds.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { ResourceKey } from "../findings/finding.ts";

export interface StoreChange {
  readonly type: "added" | "modified" | "deleted";
  /** The state after the change; for `deleted` the last one. */
  readonly resource: MeshResource;
  readonly previous?: MeshResource;
  /** The version of the store after this change. */
  readonly resourceVersion: number;
  /** Who made it, in words; missing where the store does not know. */
  readonly by?: string;
}

export type Unwatch = () => void;

/** Told of changes in batches: all that happened since the last call, in order, never empty. May not throw. */
export type StoreListener = (changes: readonly StoreChange[]) => void;

export interface ApplyResult {
  readonly outcome: "created" | "configured" | "unchanged";
  readonly resource: MeshResource;
  /** What there is to say about the resource as it now stands among the others. */
  readonly findings: readonly Finding[];
}

/**
 * - `conflict`: what the store has meanwhile, or has from elsewhere, speaks against it.
 * - `forbidden`: whoever asks may not.
 * - `unavailable`: it cannot be done now.
 */
export type StoreRefusalReason = "conflict" | "forbidden" | "unavailable";

/** Why a store does not do what it was asked to. The message is for whoever asked, and says what to do next. */
export class StoreRefusal extends Error {
  override readonly name = "StoreRefusal";
  readonly reason: StoreRefusalReason;

  constructor(reason: StoreRefusalReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface ApplyOptions {
  /** See `StoreChange`. */
  readonly by?: string | undefined;
}

export interface DeleteOptions extends ApplyOptions {
  readonly atOnce?: boolean;
}

export interface Store {
  /** Rises by one with every change of this store. It is not Kubernetes' resource version. */
  readonly resourceVersion: number;
  /** The resources of a kind, in the order in which they were first seen. */
  list<K extends Kind>(kind: K, namespace?: string): readonly ResourceOf<K>[];
  /** Every resource, in the order in which they were first seen. */
  all(): readonly MeshResource[];
  get<K extends Kind>(kind: K, namespace: string, name: string): ResourceOf<K> | undefined;
  /** Tells `listener` of every later change. */
  watch(listener: StoreListener): Unwatch;
  /**
   * The changes after `resourceVersion`, or undefined when they are no longer kept: the reader has to list again (410
   * Gone).
   */
  changesSince(resourceVersion: number): readonly StoreChange[] | undefined;
  /**
   * Creates or replaces. Resolves once watchers know. An apply that changes nothing gives no new version. @throws
   * {StoreRefusal}
   */
  apply(resource: MeshResource, options?: ApplyOptions): Promise<ApplyResult>;
  /**
   * Resolves to the deleted resource; undefined when there was none. A pod that somebody runs is only marked: it leaves
   * in good order, and whoever runs it deletes it `atOnce` when it is gone (as in Kubernetes, with a grace period of
   * 0). @throws {StoreRefusal}
   */
  delete(key: ResourceKey, options?: DeleteOptions): Promise<MeshResource | undefined>;
  /** All there is to say about the resources: what loading found, and what analysis finds now. */
  findings(): readonly Finding[];
}
