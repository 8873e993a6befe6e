// The roots that workloads believe, as a ConfigMap in every namespace: there before a namespace's first pod has begun,
// right again when somebody has edited it, and left alone while it is right. The leader writes.
import type { Store, Unwatch } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import { backOffMs, type Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { type KubernetesObject, ObjectFollower } from "../follow/object-follower.ts";
import { rootsConfigMap } from "../names.ts";
import { objectPath } from "../store/collections.ts";
import { fieldManager } from "../store/kubernetes-store.ts";

export interface RootConfigMapsOptions {
  readonly client: KubernetesClient;
  readonly store: Pick<Store, "list" | "get" | "watch">;
  readonly roots: { readonly pem: () => string; readonly follow: (listener: () => void) => void };
  readonly leadership: { readonly isLeader: boolean; readonly follow: (listener: () => void) => () => void };
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

/** At the same time: a cluster has thousands of namespaces, and its API server others to serve. */
const mostAtOnce = 8;
const retry = { baseMs: 500, maxMs: 30_000 };

interface RootConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

export class RootConfigMaps {
  readonly #options: RootConfigMapsOptions;
  readonly #follower: ObjectFollower;
  /** What is there, by namespace. */
  readonly #there = new Map<string, string>();
  readonly #due = new Set<string>();
  readonly #tries = new Map<string, number>();
  readonly #waits = new Set<() => void>();
  readonly #ends: Unwatch[] = [];
  #writing = 0;
  #hasListed = false;
  #isClosed = false;

  constructor(options: RootConfigMapsOptions) {
    const { client, clock, random = Math.random, log, store } = options;
    this.#options = options;
    this.#follower = new ObjectFollower({
      client,
      clock,
      random,
      log,
      apiVersion: "v1",
      kind: "ConfigMap",
      path: "/api/v1/configmaps",
      query: { fieldSelector: `metadata.name=${rootsConfigMap.name}` },
      onList: (objects) => {
        this.#there.clear();
        for (const object of objects) this.#note(object);
        this.#hasListed = true;
        this.#lookAtAll();
      },
      onChange: (type, object) => {
        if (type === "DELETED") this.#there.delete(object.metadata.namespace ?? "");
        else this.#note(object);
        this.#look(object.metadata.namespace ?? "");
      },
    });
    this.#ends.push(
      store.watch((changes) => {
        for (const { type, resource } of changes) {
          if (resource.kind === "Namespace" && type !== "deleted") this.#look(resource.metadata.name);
        }
      }),
      options.leadership.follow(() => this.#lookAtAll()),
    );
    options.roots.follow(() => this.#lookAtAll());
    this.#follower.start().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#ends) end();
    for (const cancel of this.#waits) cancel();
    await this.#follower.close();
  }

  #note({ metadata, data }: RootConfigMap): void {
    this.#there.set(metadata.namespace ?? "", data?.[rootsConfigMap.key] ?? "");
  }

  #lookAtAll(): void {
    for (const { metadata } of this.#options.store.list("Namespace")) this.#look(metadata.name);
  }

  #look(namespace: string): void {
    if (!this.#isWrong(namespace)) return;
    this.#due.add(namespace);
    this.#work();
  }

  /** Nothing can be made in a namespace that is on its way out. */
  #isWrong(namespace: string): boolean {
    const { leadership, store, roots } = this.#options;
    if (this.#isClosed || !this.#hasListed || !leadership.isLeader) return false;
    const found = store.get("Namespace", "", namespace);
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return false;
    return this.#there.get(namespace) !== roots.pem();
  }

  #work(): void {
    for (const namespace of this.#due) {
      if (this.#writing >= mostAtOnce) return;
      this.#due.delete(namespace);
      if (!this.#isWrong(namespace)) continue;
      this.#writing += 1;
      void this.#write(namespace).finally(() => {
        this.#writing -= 1;
        this.#work();
      });
    }
  }

  async #write(namespace: string): Promise<void> {
    const { client, roots, log, clock, random = Math.random } = this.#options;
    const { name, key } = rootsConfigMap;
    const metadata = { name, namespace, labels: { "app.kubernetes.io/part-of": "tulle" } };
    const pem = roots.pem();
    try {
      const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { [key]: pem } };
      await client.apply(objectPath("v1", "ConfigMap", namespace, name), body, fieldManager);
      this.#tries.delete(namespace);
      // Before the watch tells: it is not written twice.
      this.#there.set(namespace, pem);
      // Roots may have changed meanwhile.
      if (this.#isWrong(namespace)) this.#due.add(namespace);
    } catch (error) {
      const { code = 0, message } = error instanceof KubernetesError ? error : { message: String(error) };
      // Gone, or going: its end is told by the watch.
      if (code === 404 || /being terminated/.test(message)) return;
      const tries = this.#tries.get(namespace) ?? 0;
      this.#tries.set(namespace, tries + 1);
      if (tries === 0) log.warning("the roots cannot be written into a namespace; tried again", { namespace, message });
      const cancel = clock.after(backOffMs(retry, tries, random), () => {
        this.#waits.delete(cancel);
        this.#look(namespace);
      });
      this.#waits.add(cancel);
    }
  }
}
