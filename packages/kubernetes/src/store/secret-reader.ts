// Reads the Secrets that the mesh needs, and no other: a watch tells the names and versions of all, without what is in
// them, and those that are wanted are fetched one by one.
import { backOffMs } from "@tulle/timing";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { type FollowOptions, type KubernetesObject, metadataOnly, ObjectFollower } from "../follow/object-follower.ts";
import { objectPath } from "./collections.ts";

export interface SecretReaderOptions extends Pick<FollowOptions, "client" | "clock" | "random" | "log"> {
  readonly onSecret: (secret: KubernetesObject) => void;
  /** It is gone, or nobody wants it any more. */
  readonly onGone: (namespace: string, name: string) => void;
}

const retry = { baseMs: 500, maxMs: 30_000 };

interface Read {
  /** Of the last one that was handed on. */
  version?: string;
  isReading: boolean;
  /** It has changed since it is being read. */
  isStale: boolean;
  tries: number;
  cancelRetry?: () => void;
}

export class SecretReader {
  readonly #options: SecretReaderOptions;
  readonly #follower: ObjectFollower;
  /** Versions of all Secrets of the cluster, by `namespace/name`. */
  #versions = new Map<string, string>();
  readonly #reads = new Map<string, Read>();
  #wanted: ReadonlySet<string> = new Set();
  #isClosed = false;

  constructor(options: SecretReaderOptions) {
    this.#options = options;
    this.#follower = new ObjectFollower({
      ...options,
      path: "/api/v1/secrets",
      apiVersion: "v1",
      kind: "Secret",
      accept: metadataOnly,
      onList: (objects) => {
        this.#versions = new Map(objects.map((object) => [nameOf(object), object.metadata.resourceVersion ?? ""]));
        for (const name of this.#wanted) this.#look(name);
      },
      onChange: (type, object) => {
        const name = nameOf(object);
        if (type === "DELETED") this.#versions.delete(name);
        else this.#versions.set(name, object.metadata.resourceVersion ?? "");
        if (this.#wanted.has(name)) this.#look(name);
      },
    });
  }

  start(): Promise<void> {
    return this.#follower.start();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { cancelRetry } of this.#reads.values()) cancelRetry?.();
    await this.#follower.close();
  }

  /** `namespace/name` of each; replaces those of before. */
  want(wanted: ReadonlySet<string>): void {
    const before = this.#wanted;
    this.#wanted = wanted;
    for (const name of before) if (!wanted.has(name)) this.#forget(name);
    for (const name of wanted) if (!before.has(name)) this.#look(name);
  }

  /** Sees to it that what is known of a wanted one is what there is. */
  #look(name: string): void {
    const version = this.#versions.get(name);
    if (version === undefined) return this.#forget(name);
    const read = this.#reads.get(name) ?? { isReading: false, isStale: false, tries: 0 };
    this.#reads.set(name, read);
    if (read.version === version) return;
    if (read.isReading) {
      read.isStale = true;
      return;
    }
    read.cancelRetry?.();
    void this.#fetch(name, read);
  }

  #forget(name: string): void {
    const read = this.#reads.get(name);
    if (read === undefined) return;
    this.#reads.delete(name);
    read.cancelRetry?.();
    const [namespace = "", secretName = ""] = name.split("/");
    if (read.version !== undefined) this.#options.onGone(namespace, secretName);
  }

  async #fetch(name: string, read: Read): Promise<void> {
    read.isReading = true;
    read.isStale = false;
    const isOver = (): boolean => this.#isClosed || this.#reads.get(name) !== read;
    const { client, clock, random, log, onSecret } = this.#options;
    const [namespace = "", secretName = ""] = name.split("/");
    try {
      const secret = await client.request<KubernetesObject>({
        path: objectPath("v1", "Secret", namespace, secretName),
      });
      if (isOver()) return;
      read.version = secret.metadata.resourceVersion ?? "";
      read.tries = 0;
      onSecret(secret);
    } catch (error) {
      // That it is gone is told by the watch.
      if (isOver() || (error instanceof KubernetesError && error.code === 404)) return;
      log.warning(`the Secret ${name} cannot be read, and is tried again: ${(error as Error).message}`);
      read.cancelRetry = clock.after(backOffMs(retry, read.tries, random), () => this.#look(name));
      read.tries += 1;
    } finally {
      read.isReading = false;
    }
    if (read.isStale) this.#look(name);
  }
}

function nameOf({ metadata: { namespace = "", name } }: KubernetesObject): string {
  return `${namespace}/${name}`;
}
