// The authority of a user's machine on disk: made once however many start at once, kept, and readable by its owner
// alone.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { type ApiClient, parseResource, type Secret, serverCredential, type StoreListener } from "@tulle/config";
import { waitUntil } from "./process/wait-until.ts";
import {
  developmentAuthorityFolder,
  developmentRootFile,
  DevelopmentCertificate,
  openDevelopmentAuthority,
} from "./development-certificate.ts";

const dayMs = 24 * 60 * 60 * 1000;

async function environment(t: TestContext): Promise<{ readonly XDG_STATE_HOME: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), "development-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return { XDG_STATE_HOME: folder };
}

test("several that start at once get the same authority", async (t) => {
  const env = await environment(t);
  const opened = await Promise.all(Array.from({ length: 5 }, () => openDevelopmentAuthority(env, Date.now())));
  const serials = new Set(opened.map(({ certificate }) => certificate.serial));
  assert.equal(serials.size, 1);
  assert.equal(await readFile(developmentRootFile(env), "utf8"), opened[0]!.certificate.pem);
  const file = path.join(developmentAuthorityFolder(env), "authority.pem");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(developmentRootFile(env))).mode & 0o777, 0o644);
  assert.equal((await openDevelopmentAuthority(env, Date.now())).certificate.serial, [...serials][0]);
});

test("a file that holds no authority is told of, and left alone", async (t) => {
  const env = await environment(t);
  await openDevelopmentAuthority(env, Date.now());
  const file = path.join(developmentAuthorityFolder(env), "authority.pem");
  await writeFile(file, "nothing");
  await assert.rejects(openDevelopmentAuthority(env, Date.now()), /holds no authority: remove it/);
  assert.equal(await readFile(file, "utf8"), "nothing");
});

/** A store of one Secret, behind the two calls that are made. */
class OneSecret {
  present: Secret | undefined;
  applied = 0;
  #onChanges: StoreListener = () => undefined;

  watch(_kinds: unknown, { onChanges }: { readonly onChanges: StoreListener }): unknown {
    this.#onChanges = onChanges;
    return { close: () => undefined };
  }

  remove(): void {
    const resource = this.present!;
    this.present = undefined;
    this.#onChanges([{ type: "deleted", resource, resourceVersion: 2 }]);
  }

  get(): Promise<Secret | undefined> {
    return Promise.resolve(this.present);
  }

  apply(resource: Secret): Promise<unknown> {
    this.applied += 1;
    const parsed = parseResource(resource);
    assert.deepEqual(parsed.findings, []);
    this.present = parsed.resource as Secret;
    return Promise.resolve({});
  }
}

test("the Secret is made, renewed in time, and a person's own is left alone", async (t) => {
  const env = await environment(t);
  const api = new OneSecret();
  const problems: string[] = [];
  const keeper = new DevelopmentCertificate(api as unknown as ApiClient, env, (message) => problems.push(message));
  t.after(() => keeper.close());
  const nowMs = Date.now();
  await keeper.publish(nowMs);
  const first = api.present!;
  const read = serverCredential(first);
  assert.ok(read.ok);
  assert.ok(read.expiresAtMs > nowMs + 80 * dayMs);
  await keeper.publish(nowMs + 50 * dayMs);
  assert.equal(api.applied, 1, "it is fresh");
  await keeper.publish(nowMs + 61 * dayMs);
  assert.equal(api.applied, 2, "it is renewed a month before its end");
  assert.notDeepEqual(api.present!.data, first.data);

  const { labels: _labels, ...metadata } = first.metadata;
  api.present = { ...first, metadata };
  await keeper.publish(nowMs + 200 * dayMs);
  assert.equal(api.applied, 2, "a person's own");

  await writeFile(path.join(developmentAuthorityFolder(env), "authority.pem"), "nothing");
  api.present = undefined;
  await keeper.publish(nowMs + 200 * dayMs);
  assert.match(problems.join(), /no certificate for https:\/\/localhost: .* remove it/);
});

test("the Secret is made again when somebody deletes it", async (t) => {
  const env = await environment(t);
  const api = new OneSecret();
  const keeper = new DevelopmentCertificate(api as unknown as ApiClient, env, (message) => assert.fail(message));
  t.after(() => keeper.close());
  await keeper.publish();
  keeper.watch();
  api.remove();
  await waitUntil(() => api.present !== undefined, { timeoutMs: 60_000, what: () => "the Secret" });
  assert.equal(api.applied, 2);
});
