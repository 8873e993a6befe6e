// What a control plane knows of itself and all of its replicas share, by name: keys of one Secret. What one of them
// alone knows, and can learn again, lies in files that end with the pod.
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { stateSecret } from "../names.ts";
import { objectPath } from "../store/collections.ts";
import { followObject } from "./follow-object.ts";
import { codedText, readSecret, type SecretName, type SecretObject, textOf, writeSecret } from "./secret-object.ts";

export interface SecretTextsOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export class SecretTexts {
  readonly #options: SecretTextsOptions;
  readonly #secret: SecretName;

  constructor(options: SecretTextsOptions) {
    this.#options = options;
    this.#secret = { client: options.client, namespace: options.namespace, name: stateSecret };
  }

  /** Nobody is told that it may be known: who may read Secrets is the cluster's to say. */
  async read(name: string): Promise<{ readonly text: string; readonly mayBeKnown: false } | undefined> {
    const text = textOf(await readSecret(this.#secret), name);
    return text === undefined ? undefined : { text, mayBeKnown: false };
  }

  async write(name: string, text: string): Promise<void> {
    const { client, namespace, name: secretName } = this.#secret;
    const data = { [name]: codedText(text) };
    try {
      await client.request({
        method: "PATCH",
        path: objectPath("v1", "Secret", namespace, secretName),
        contentType: "application/merge-patch+json",
        body: { data },
      });
    } catch (error) {
      if (!(error instanceof KubernetesError) || error.code !== 404) throw error;
      // Another may be faster: then it is there.
      if ((await writeSecret(this.#secret, undefined, { [name]: text })) === undefined) await this.write(name, text);
    }
  }

  /** Where there is none. Resolves to what there is then. */
  async writeNew(name: string, text: string): Promise<string> {
    for (;;) {
      const secret = await readSecret(this.#secret);
      const there = textOf(secret, name);
      if (there !== undefined) return there;
      if ((await writeSecret(this.#secret, secret, { [name]: text })) !== undefined) return text;
    }
  }

  /** Of the whole Secret: another key that is written makes another version, too. */
  async readVersion(
    name: string,
  ): Promise<{ readonly text: string | undefined; readonly version: string | undefined }> {
    const secret = await readSecret(this.#secret);
    return { text: textOf(secret, name), version: secret?.metadata.resourceVersion };
  }

  /** Undefined where another has written since that version: nothing has changed then. */
  async writeOver(
    name: string,
    text: string,
    version: string | undefined,
  ): Promise<{ readonly version: string | undefined } | undefined> {
    const { client, namespace, name: secretName } = this.#secret;
    if (version === undefined) {
      const made = await writeSecret(this.#secret, undefined, { [name]: text });
      return made && { version: made.metadata.resourceVersion };
    }
    try {
      const { metadata } = await client.request<SecretObject>({
        method: "PATCH",
        path: objectPath("v1", "Secret", namespace, secretName),
        contentType: "application/merge-patch+json",
        body: { metadata: { resourceVersion: version }, data: { [name]: codedText(text) } },
      });
      return { version: metadata.resourceVersion };
    } catch (error) {
      // 404: it has been removed.
      if (error instanceof KubernetesError && (error.code === 409 || error.code === 404)) return undefined;
      throw error;
    }
  }

  placeOf(name: string): string {
    return `key ${name} of the Secret ${this.#secret.namespace}/${this.#secret.name}`;
  }

  /** Calls back when any of them may have changed. Returns how to end that. */
  follow(listener: () => void): () => void {
    const { namespace, name } = this.#secret;
    const follower = followObject({ ...this.#options, kind: "Secret", namespace, name, onChange: listener });
    return () => void follower.close();
  }
}
