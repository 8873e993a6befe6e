// The certificate for `https://localhost`: an authority of this user's, which a person can trust once for all folders,
// and a Secret that any Gateway may name. The authority's key never leaves its file; the certificate's own key lives as
// long as its Secret.
import { randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import {
  type ApiClient,
  localhostSecret,
  type ResourceWatch,
  type Secret,
  type StoreChange,
  tlsSecretType,
} from "@tulle/config";
import {
  createDevelopmentAuthority,
  type DevelopmentAuthority,
  developmentAuthorityText,
  issueDevelopmentCertificate,
  readDevelopmentAuthority,
  writeSecretFile,
} from "@tulle/identity";
import { makeOwnFolder } from "@tulle/identity/own";
import { stateHome } from "./instance.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const dayMs = 24 * 60 * 60 * 1000;
/** A certificate is made anew with each start, and when so little is left of it that somebody may be away meanwhile. */
const renewBeforeMs = 30 * dayMs;
const checkIntervalMs = dayMs / 2;

/** Tells the Secret that `tulle up` provides from one that a person made in its place. */
const providedLabel = "local.tulle.io/provided-by";

export function developmentAuthorityFolder(env: Environment): string {
  return path.join(stateHome(env), "tulle", "development-ca");
}

/** What a person gives to a browser, or to `curl --cacert`. */
export function developmentRootFile(env: Environment): string {
  return path.join(developmentAuthorityFolder(env), "root-cert.pem");
}

/**
 * The authority there is, or a new one. Several supervisors may start at once: the file appears whole, and whoever
 * comes second takes what is there. @throws when the folder cannot be written, or holds something else
 */
export async function openDevelopmentAuthority(env: Environment, nowMs: number): Promise<DevelopmentAuthority> {
  const file = path.join(developmentAuthorityFolder(env), "authority.pem");
  makeOwnFolder(path.dirname(file));
  let text = await readText(file);
  if (text === undefined) {
    const owner = `${os.userInfo().username} on ${os.hostname()}`;
    await createWhole(file, developmentAuthorityText(await createDevelopmentAuthority(owner, nowMs)));
    text = await readFile(file, "utf8");
  }
  const authority = readDevelopmentAuthority(text);
  if (authority === undefined) throw new Error(`${file} holds no authority: remove it, and a new one is made`);
  if (authority.certificate.notAfterMs - nowMs < renewBeforeMs) {
    throw new Error(`the authority in ${file} ends soon: remove it, and a new one is made, to be trusted anew`);
  }
  const root = developmentRootFile(env);
  if ((await readText(root)) !== authority.certificate.pem)
    await writeSecretFile(root, authority.certificate.pem, 0o644);
  return authority;
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Does nothing where the file is there already. */
async function createWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await link(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Keeps the Secret of an instance fresh until it is closed. */
export class DevelopmentCertificate {
  readonly #api: ApiClient;
  readonly #env: Environment;
  readonly #onProblem: (message: string) => void;
  readonly #timer: NodeJS.Timeout;
  #notAfterMs = 0;
  #publishing = Promise.resolve();
  #watch: ResourceWatch | undefined;

  constructor(api: ApiClient, env: Environment, onProblem: (message: string) => void) {
    this.#api = api;
    this.#env = env;
    this.#onProblem = onProblem;
    this.#timer = setInterval(() => void this.publish(), checkIntervalMs).unref();
  }

  /**
   * Puts the Secret into the mesh unless it is fresh, or a person's own stands in its place. Never rejects: what has no
   * certificate for localhost runs all the same.
   */
  publish(nowMs = Date.now()): Promise<void> {
    this.#publishing = this.#publishing.then(() => this.#publish(nowMs));
    return this.#publishing;
  }

  /** From now on it is made again when somebody deletes it. */
  watch(): void {
    const { namespace, name } = localhostSecret;
    this.#watch ??= this.#api.watch(["Secret"], {
      onChanges: (changes) => {
        const isOurs = ({ resource: { metadata } }: StoreChange): boolean =>
          metadata.name === name && metadata.namespace === namespace;
        if (changes.some((change) => change.type === "deleted" && isOurs(change))) void this.publish();
      },
    });
  }

  async #publish(nowMs: number): Promise<void> {
    try {
      const { namespace, name } = localhostSecret;
      const present = await this.#api.get("Secret", namespace, name);
      if (present !== undefined) {
        const isFresh = this.#notAfterMs - nowMs > renewBeforeMs;
        if (isFresh || present.metadata.labels?.[providedLabel] === undefined) return;
      }
      const authority = await openDevelopmentAuthority(this.#env, nowMs);
      const { secret, notAfterMs } = await localhostCertificate(authority, nowMs);
      await this.#api.apply(secret);
      this.#notAfterMs = notAfterMs;
    } catch (error) {
      this.#onProblem(`there is no certificate for https://localhost: ${(error as Error).message}`);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.#watch?.close();
  }
}

async function localhostCertificate(
  authority: DevelopmentAuthority,
  nowMs: number,
): Promise<{ readonly secret: Secret; readonly notAfterMs: number }> {
  const { chainPem, keyPem, notAfterMs } = await issueDevelopmentCertificate(authority, nowMs);
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const secret: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...localhostSecret, labels: { [providedLabel]: "tulle-up" } },
    type: tlsSecretType,
    data: {
      "tls.crt": base64(chainPem),
      "tls.key": base64(keyPem),
      "ca.crt": base64(authority.certificate.pem),
    },
  };
  return { secret, notAfterMs };
}
