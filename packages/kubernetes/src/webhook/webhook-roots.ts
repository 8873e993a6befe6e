// The roots by which the API server believes the webhooks, written into their configurations, the revision's own and
// those of its tags: installed empty, and changed when the mesh's root is, or somebody has edited them. The leader
// writes.
import type { Logger } from "@tulle/telemetry";
import { backOffMs, type Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { type KubernetesObject, ObjectFollower } from "../follow/object-follower.ts";
import { injectorWebhook, revisionLabel, tagLabel, validatorWebhook } from "../names.ts";

export interface WebhookRootsOptions {
  readonly client: KubernetesClient;
  readonly revision: string;
  readonly roots: { readonly pem: () => string; readonly follow: (listener: () => void) => void };
  readonly leadership: { readonly isLeader: boolean; readonly follow: (listener: () => void) => () => void };
  readonly clock: Clock;
  readonly log: Logger;
}

interface Configuration extends KubernetesObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig?: { readonly caBundle?: string } }[];
}

const retry = { baseMs: 500, maxMs: 30_000 };

export class WebhookRoots {
  readonly #own: readonly FollowedConfigurations[];
  readonly #tags: FollowedConfigurations;
  readonly #unfollow: () => void;

  constructor(options: WebhookRootsOptions) {
    const { revision, leadership, roots } = options;
    const path = "/apis/admissionregistration.k8s.io/v1";
    const [mutating, validating] = [`${path}/mutatingwebhookconfigurations`, `${path}/validatingwebhookconfigurations`];
    const named = (name: string): Query => ({ fieldSelector: `metadata.name=${name}` });
    this.#own = [
      new FollowedConfigurations(options, mutating, named(injectorWebhook(revision))),
      new FollowedConfigurations(options, validating, named(validatorWebhook(revision))),
    ];
    this.#tags = new FollowedConfigurations(options, mutating, {
      labelSelector: `${tagLabel},${revisionLabel}=${revision}`,
    });
    const look = (): void => {
      for (const each of this.#all()) each.look();
    };
    this.#unfollow = leadership.follow(look);
    roots.follow(look);
  }

  /** Whether API servers believe the revision's own webhooks, or have none to ask. */
  areWritten(): boolean {
    return this.#own.every((each) => each.areWritten());
  }

  async close(): Promise<void> {
    this.#unfollow();
    await Promise.all(this.#all().map((each) => each.close()));
  }

  #all(): readonly FollowedConfigurations[] {
    return [...this.#own, this.#tags];
  }
}

type Query = Readonly<Record<string, string>>;

/** Those of one collection that a selector finds. */
class FollowedConfigurations {
  readonly #options: WebhookRootsOptions;
  readonly #collection: string;
  readonly #follower: ObjectFollower;
  readonly #configurations = new Map<string, WrittenConfiguration>();
  #isListed = false;

  constructor(options: WebhookRootsOptions, collection: string, query: Query) {
    const { client, clock, log } = options;
    this.#options = options;
    this.#collection = collection;
    this.#follower = new ObjectFollower({
      client,
      clock,
      log,
      random: Math.random,
      path: collection,
      query,
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "WebhookConfiguration",
      onList: (objects) => {
        this.#isListed = true;
        const names = new Set(objects.map(({ metadata }) => metadata.name));
        for (const name of this.#configurations.keys()) if (!names.has(name)) this.#drop(name);
        for (const object of objects) this.#put(object);
      },
      onChange: (type, object) => {
        if (type === "DELETED") this.#drop(object.metadata.name);
        else this.#put(object);
      },
    });
    this.#follower.start().catch(() => undefined);
  }

  async close(): Promise<void> {
    for (const name of this.#configurations.keys()) this.#drop(name);
    await this.#follower.close();
  }

  areWritten(): boolean {
    return this.#isListed && [...this.#configurations.values()].every((each) => each.isWritten());
  }

  look(): void {
    for (const each of this.#configurations.values()) each.look();
  }

  #put(object: Configuration): void {
    const { name } = object.metadata;
    let one = this.#configurations.get(name);
    if (one === undefined) {
      one = new WrittenConfiguration(this.#options, `${this.#collection}/${encodeURIComponent(name)}`);
      this.#configurations.set(name, one);
    }
    one.put(object);
  }

  #drop(name: string): void {
    this.#configurations.get(name)?.close();
    this.#configurations.delete(name);
  }
}

class WrittenConfiguration {
  readonly #options: WebhookRootsOptions;
  readonly #path: string;
  #there: Configuration | undefined;
  #isWriting = false;
  #tries = 0;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;

  constructor(options: WebhookRootsOptions, path: string) {
    this.#options = options;
    this.#path = path;
  }

  put(object: Configuration): void {
    this.#there = object;
    this.look();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry();
  }

  isWritten(): boolean {
    return this.#patch().length === 0;
  }

  look(): void {
    const { leadership } = this.#options;
    if (this.#isClosed || this.#isWriting || !leadership.isLeader || this.#patch().length === 0) return;
    this.#isWriting = true;
    void this.#write().then((isWritten) => {
      this.#isWriting = false;
      // Roots may have changed meanwhile.
      if (isWritten) this.look();
    });
  }

  /** Each by its name: of a list that somebody has changed meanwhile nothing is written. */
  #patch(): readonly object[] {
    const caBundle = Buffer.from(this.#options.roots.pem()).toString("base64");
    return (this.#there?.webhooks ?? []).flatMap(({ name, clientConfig }, index) =>
      clientConfig?.caBundle === caBundle
        ? []
        : [
            { op: "test", path: `/webhooks/${index}/name`, value: name },
            { op: "add", path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle },
          ],
    );
  }

  /** Whether it went well; it never rejects. */
  async #write(): Promise<boolean> {
    const { client, log, clock } = this.#options;
    try {
      this.#there = await client.request<Configuration>({
        method: "PATCH",
        path: this.#path,
        contentType: "application/json-patch+json",
        body: this.#patch(),
      });
      this.#tries = 0;
      return true;
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 404) return false;
      if (this.#tries === 0) {
        log.warning("the webhooks' roots cannot be written; tried again", {
          path: this.#path,
          reason: (error as Error).message,
        });
      }
      this.#cancelRetry = clock.after(backOffMs(retry, this.#tries, Math.random), () => this.look());
      this.#tries += 1;
      return false;
    }
  }
}
