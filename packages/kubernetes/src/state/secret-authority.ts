// The mesh's authority in the Secret `tulle-ca-secret`, shared by all control planes of the cluster: each change is
// written over the version that it was made from, so that those which start together agree on one root. An authority of
// the operator's own lies in the Secret `cacerts`, with Istio's keys, and wins.
import { type AuthorityStorage, cacertsFiles, checkAuthority, type CheckedAuthority } from "@tulle/identity";
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { authoritySecret, authoritySecretType, givenAuthoritySecret, rootsConfigMap } from "../names.ts";
import { followObject } from "./follow-object.ts";
import { readSecret, type SecretName, type SecretObject, textOf, writeSecret } from "./secret-object.ts";

const stateKey = "authority.json";

export interface SecretAuthorityOptions {
  readonly client: KubernetesClient;
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export class SecretAuthority implements AuthorityStorage {
  readonly place: string;
  readonly givenPlace: string;
  readonly #options: SecretAuthorityOptions;
  readonly #secret: SecretName;
  readonly #given: SecretName;
  /** As it was read or written last. */
  #seen: SecretObject | undefined;

  constructor(options: SecretAuthorityOptions) {
    const { client, namespace } = options;
    this.#options = options;
    this.#secret = { client, namespace, name: authoritySecret };
    this.#given = { client, namespace, name: givenAuthoritySecret };
    this.place = `Secret ${namespace}/${authoritySecret}`;
    this.givenPlace = `Secret ${namespace}/${givenAuthoritySecret}`;
  }

  async read(): Promise<string | undefined> {
    this.#seen = await readSecret(this.#secret);
    return textOf(this.#seen, stateKey);
  }

  async write(state: string, rootsPem: string): Promise<boolean> {
    const texts = { [stateKey]: state, [rootsConfigMap.key]: rootsPem };
    const written = await writeSecret(this.#secret, this.#seen, texts, authoritySecretType);
    if (written !== undefined) this.#seen = written;
    return written !== undefined;
  }

  async readGiven(nowMs: number): Promise<CheckedAuthority | undefined> {
    const secret = await readSecret(this.#given);
    if (secret === undefined) return undefined;
    const missing = [cacertsFiles.certificate, cacertsFiles.key, cacertsFiles.roots].filter(
      (key) => textOf(secret, key) === undefined,
    );
    if (missing.length > 0) {
      const problems = missing.map((file) => {
        const message = `${file}: the key is missing in the ${this.givenPlace}`;
        return { code: "missing", file, message } as const;
      });
      return { ok: false, problems };
    }
    const part = (key: string): string => textOf(secret, key) ?? "";
    const { certificate, key, chain, roots } = cacertsFiles;
    const pem = { certificate: part(certificate), key: part(key), chain: part(chain), roots: part(roots) };
    return checkAuthority(pem, cacertsFiles, nowMs);
  }

  /** The versions alone are followed: what is in them is read when it counts. */
  follow(listener: () => void): () => void {
    const { client, clock, log } = this.#options;
    const followers = [this.#secret, this.#given].map(({ namespace, name }) =>
      followObject({ client, clock, log, kind: "Secret", namespace, name, onChange: listener }),
    );
    return () => {
      for (const follower of followers) void follower.close();
    };
  }
}
