// The roots by which the API server believes the webhooks, written into both of their configurations: installed empty,
// and changed when the mesh's root is, or somebody has edited them. The leader writes.
import type { Logger } from "@tulle/telemetry";
import { backOffMs, type Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { type KubernetesObject, ObjectFollower } from "../follow/object-follower.ts";
import { injectorWebhook, validatorWebhook } from "../names.ts";

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
  readonly #configurations: readonly FollowedConfiguration[];
  readonly #unfollow: () => void;

  constructor(options: WebhookRootsOptions) {
    const { revision, leadership, roots } = options;
    const path = "/apis/admissionregistration.k8s.io/v1";
    this.#configurations = [
      new FollowedConfiguration(options, `${path}/mutatingwebhookconfigurations`, injectorWebhook(revision)),
      new FollowedConfiguration(options, `${path}/validatingwebhookconfigurations`, validatorWebhook(revision)),
    ];
    const look = (): void => {
      for (const each of this.#configurations) each.look();
    };
    this.#unfollow = leadership.follow(look);
    roots.follow(look);
  }

  /** Whether API servers believe the webhooks, or have none to ask. */
  areWritten(): boolean {
    return this.#configurations.every((each) => each.isWritten());
  }

  async close(): Promise<void> {
    this.#unfollow();
    await Promise.all(this.#configurations.map((each) => each.close()));
  }
}

class FollowedConfiguration {
  readonly #options: WebhookRootsOptions;
  readonly #path: string;
  readonly #follower: ObjectFollower;
  #there: Configuration | undefined;
  #isListed = false;
  #isWriting = false;
  #tries = 0;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;

  constructor(options: WebhookRootsOptions, collection: string, name: string) {
    const { client, clock, log } = options;
    this.#options = options;
    this.#path = `${collection}/${name}`;
    this.#follower = new ObjectFollower({
      client,
      clock,
      log,
      random: Math.random,
      path: collection,
      query: { fieldSelector: `metadata.name=${name}` },
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "WebhookConfiguration",
      onList: (objects) => {
        this.#isListed = true;
        [this.#there] = objects;
        this.look();
      },
      onChange: (type, object) => {
        this.#there = type === "DELETED" ? undefined : object;
        this.look();
      },
    });
    this.#follower.start().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#follower.close();
  }

  isWritten(): boolean {
    return this.#isListed && this.#patch().length === 0;
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
