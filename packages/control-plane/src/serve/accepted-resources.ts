// Stands between the store and the snapshot: a resource that would spoil a route table is set aside with a finding, and
// its last good version goes on in its place.
import { keyOf, keyText, type Finding, type Kind, type MeshResource, type ResourceOf, type Store } from "@tulle/config";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import { checkedKinds, checkResource } from "../snapshot/check-resource.ts";

export class AcceptedResources implements ResourceReader {
  readonly #store: Pick<Store, "list">;
  #findings: readonly Finding[] = [];
  /** The newest good version of each checked resource, by key. */
  #good = new Map<string, MeshResource>();
  #bad: ReadonlySet<MeshResource> = new Set();

  constructor(store: Pick<Store, "list">) {
    this.#store = store;
  }

  /** What was set aside, and why. */
  get findings(): readonly Finding[] {
    return this.#findings;
  }

  /** Looks at all resources anew. */
  refresh(): void {
    const good = new Map<string, MeshResource>();
    const bad = new Set<MeshResource>();
    const all: Finding[] = [];
    for (const resource of checkedKinds.flatMap((kind): readonly MeshResource[] => this.#store.list(kind))) {
      const key = keyText(keyOf(resource));
      const findings = checkResource(resource);
      const kept = findings.length === 0 ? resource : this.#good.get(key);
      if (kept !== undefined) good.set(key, kept);
      if (findings.length > 0) bad.add(resource);
      const outcome = kept === undefined ? "is left out" : "is set aside, its last good version goes on";
      all.push(...findings.map((finding) => ({ ...finding, message: `${finding.message}; the resource ${outcome}` })));
    }
    this.#good = good;
    this.#bad = bad;
    this.#findings = all;
  }

  list<K extends Kind>(kind: K, namespace?: string): readonly ResourceOf<K>[] {
    const resources = this.#store.list(kind, namespace) as readonly MeshResource[];
    const accepted = resources.flatMap((resource) =>
      this.#bad.has(resource) ? (this.#good.get(keyText(keyOf(resource))) ?? []) : [resource],
    );
    return accepted as readonly MeshResource[] as readonly ResourceOf<K>[];
  }
}
