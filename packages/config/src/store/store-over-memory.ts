/**
 * A store that keeps in memory what it follows elsewhere: reads and watches are the memory's, and how a write is done
 * is its own business.
 */
import type { Finding, ResourceKey } from "../findings/finding.ts";
import type { Kind } from "../kinds/kinds.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { ApplyOptions, ApplyResult, DeleteOptions, Store, StoreChange, StoreListener, Unwatch } from "./store.ts";

export abstract class StoreOverMemory implements Store {
  protected readonly memory: MemoryStore;

  protected constructor(memory: MemoryStore) {
    this.memory = memory;
  }

  abstract apply(resource: MeshResource, options?: ApplyOptions): Promise<ApplyResult>;
  abstract delete(key: ResourceKey, options?: DeleteOptions): Promise<MeshResource | undefined>;

  get resourceVersion(): number {
    return this.memory.resourceVersion;
  }

  list<K extends Kind>(kind: K, namespace?: string): readonly ResourceOf<K>[] {
    return this.memory.list(kind, namespace);
  }

  all(): readonly MeshResource[] {
    return this.memory.all();
  }

  get<K extends Kind>(kind: K, namespace: string, name: string): ResourceOf<K> | undefined {
    return this.memory.get(kind, namespace, name);
  }

  watch(listener: StoreListener): Unwatch {
    return this.memory.watch(listener);
  }

  changesSince(resourceVersion: number): readonly StoreChange[] | undefined {
    return this.memory.changesSince(resourceVersion);
  }

  findings(): readonly Finding[] {
    return this.memory.findings();
  }
}
