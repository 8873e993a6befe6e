// The authority on disk, from its first start over restarts, changes of root and damage.
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import test, { type TestContext } from "node:test";
import { privateKeyPem } from "../keys/private-key.ts";
import { temporaryFolder } from "../testing/openssl.ts";
import { certificatesOf, dayMs, hourMs, issueTo, nowMs } from "../testing/workload.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { AuthorityFolder } from "./authority-folder.ts";
import { authorityText, parseAuthority } from "./authority-text.ts";
import type { AuthorityStorage } from "./authority-storage.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { createAuthority } from "./create-authority.ts";
import { openAuthority, type OpenAuthorityOptions } from "./open-authority.ts";
import type { AuthorityState } from "./root-rotation.ts";

/** As far as it has come by then. */
async function opened(
  stateDir: string,
  { cacertsDir, ...options }: Partial<OpenAuthorityOptions> & { readonly cacertsDir?: string } = {},
): Promise<CertificateAuthority> {
  const result = await tried(stateDir, { cacertsDir, ...options });
  assert.ok(result.ok, JSON.stringify(result));
  await result.authority.advance();
  return result.authority;
}

function tried(
  stateDir: string,
  { cacertsDir, ...options }: Partial<OpenAuthorityOptions> & { readonly cacertsDir?: string | undefined } = {},
) {
  const storage = new AuthorityFolder(stateDir, cacertsDir);
  return openAuthority({ storage, trustDomain: "cluster.local", now: () => nowMs, ...options });
}

async function brought(t: TestContext): Promise<{ readonly folder: string; readonly material: AuthorityMaterial }> {
  const folder = await temporaryFolder(t);
  const material = await createAuthority({ trustDomain: "cluster.local", nowMs });
  await writeFile(path.join(folder, "ca-cert.pem"), material.certificate.pem);
  await writeFile(path.join(folder, "ca-key.pem"), privateKeyPem(material.key));
  await writeFile(path.join(folder, "root-cert.pem"), material.roots[0]!.pem);
  return { folder, material };
}

test("the first start makes an authority, and every later one finds it", async (t) => {
  const stateDir = path.join(await temporaryFolder(t), "ca");
  const first = await opened(stateDir);
  const again = await opened(stateDir);
  assert.equal(again.trustBundlePem, first.trustBundlePem);
  assert.equal(again.state.signing.certificate.pem, first.state.signing.certificate.pem);
  const workload = await issueTo(again);
  assert.equal(workload.rootsPem, await readFile(path.join(stateDir, "root-cert.pem"), "utf8"));
  assert.deepEqual((await readdir(stateDir)).sort(), ["authority.json", "root-cert.pem"]);
  assert.equal((await stat(path.join(stateDir, "authority.json"))).mode & 0o777, 0o600);
  assert.equal((await stat(stateDir)).mode & 0o777, 0o700);
});

test("the root's key is kept nowhere", async (t) => {
  const stateDir = await temporaryFolder(t);
  await opened(stateDir);
  const text = await readFile(path.join(stateDir, "authority.json"), "utf8");
  assert.equal(text.match(/BEGIN PRIVATE KEY/g)?.length, 1);
});

const states: readonly { readonly name: string; readonly make: () => Promise<AuthorityState> }[] = [
  { name: "steady", make: async () => ({ phase: "steady", signing: await material() }) },
  {
    name: "introducing",
    make: async () => ({
      phase: "introducing",
      signing: await material(),
      next: await material(),
      signFromMs: nowMs + 5,
      overlapMs: 7,
      keepUntilMs: nowMs + 9,
    }),
  },
  {
    name: "retiring",
    make: async () => ({
      phase: "retiring",
      signing: await material(),
      retiredRoots: (await material()).roots,
      dropAtMs: nowMs + 5,
    }),
  },
];

const material = () => createAuthority({ trustDomain: "cluster.local", nowMs });

for (const { name, make } of states) {
  test(`a state that is ${name} is read as it was written`, async () => {
    const text = authorityText(await make());
    const read = parseAuthority(text, "a test", nowMs);
    assert.ok(read.ok);
    assert.equal(authorityText(read.state), text);
    assert.equal(read.state.phase, name);
  });
}

test("a change of root survives restarts in each of its phases", async (t) => {
  const stateDir = await temporaryFolder(t);
  const rotation = { introduceMs: hourMs, overlapMs: dayMs };
  const first = await opened(stateDir);
  const next = await material();
  assert.equal(await first.rotateTo(next, rotation), true);
  const rootsAt = async (hours: number) => {
    const authority = await opened(stateDir, { now: () => nowMs + hours * hourMs });
    return { authority, roots: authority.roots.map(({ subject }) => subject) };
  };
  const [old, fresh] = [first.roots[0]!.subject, next.roots[0]!.subject];
  assert.deepEqual((await rootsAt(0.5)).roots, [old, fresh]);
  const { authority, roots } = await rootsAt(2);
  assert.deepEqual(roots, [fresh, old]);
  assert.equal(
    (await issueTo(authority, { nowMs: nowMs + 2 * hourMs })).leaf.issuerDer.equals(next.certificate.subjectDer),
    true,
  );
  assert.deepEqual((await rootsAt(26)).roots, [fresh]);
  const published = await readFile(path.join(stateDir, "root-cert.pem"), "utf8");
  assert.deepEqual(
    certificatesOf(published).map(({ subject }) => subject),
    [fresh],
  );
});

test("a brought authority is used from the first start, and changed to later", async (t) => {
  const { folder, material: theirs } = await brought(t);
  const direct = await opened(await temporaryFolder(t), { cacertsDir: folder });
  assert.equal(direct.trustBundlePem, theirs.roots[0]!.pem);

  const stateDir = await temporaryFolder(t);
  const own = await opened(stateDir);
  const rotation = { introduceMs: hourMs, overlapMs: dayMs };
  const both = await opened(stateDir, { cacertsDir: folder, rotation });
  assert.equal(both.trustBundlePem, own.trustBundlePem + theirs.roots[0]!.pem);
  assert.equal(both.state.signing.certificate.pem, own.state.signing.certificate.pem);
  const after = await opened(stateDir, { cacertsDir: folder, rotation, now: () => nowMs + hourMs });
  assert.equal(after.state.signing.certificate.pem, theirs.certificate.pem);
  const done = await opened(stateDir, { cacertsDir: folder, rotation, now: () => nowMs + hourMs + dayMs });
  assert.equal(done.trustBundlePem, theirs.roots[0]!.pem);
});

test("a brought authority with faults stops the start, whatever was kept", async (t) => {
  const { folder } = await brought(t);
  const stateDir = await temporaryFolder(t);
  await opened(stateDir);
  await rm(path.join(folder, "ca-key.pem"));
  const result = await tried(stateDir, { cacertsDir: folder });
  assert.deepEqual(result.ok ? [] : result.problems.map(({ code, file }) => `${code} ${file}`), ["missing ca-key.pem"]);
});

test("changes that are asked for together happen one after the other", async (t) => {
  const authority = await opened(await temporaryFolder(t));
  const next = await material();
  const [rotated, advanced] = await Promise.all([
    authority.rotateTo(next, { introduceMs: 0, overlapMs: dayMs }),
    authority.advance(),
  ]);
  assert.deepEqual([rotated, advanced], [true, true]);
  assert.equal(authority.state.phase, "retiring");
});

test("a state that cannot be kept is not acted on", async (t) => {
  const stateDir = path.join(await temporaryFolder(t), "ca");
  const authority = await opened(stateDir);
  const before = authority.trustBundlePem;
  // A folder in the file's place stops even root's writes.
  await rm(path.join(stateDir, "authority.json"));
  await mkdir(path.join(stateDir, "authority.json"));
  await assert.rejects(authority.rotateTo(await material()));
  assert.equal(authority.trustBundlePem, before);
  await rm(path.join(stateDir, "authority.json"), { recursive: true });
  assert.equal(await authority.rotateTo(await material()), true);
});

const damages = [
  { name: "no JSON", damage: () => "{", expected: /it is not JSON/ },
  {
    name: "of another version",
    damage: (text: string) => text.replace('"version": 1', '"version": 2'),
    expected: /not of version 1/,
  },
  { name: "without its parts", damage: () => '{"version":1,"phase":"steady"}', expected: /parts of it are missing/ },
  {
    name: "in an unknown phase",
    damage: (text: string) => text.replace("steady", "holiday"),
    expected: /its phase is none/,
  },
  { name: "null", damage: () => "null", expected: /not of version 1/ },
  {
    name: "with the key of another",
    damage: async (text: string) => {
      const saved = JSON.parse(text) as { signing: { key: string } };
      return JSON.stringify({ ...saved, signing: { ...saved.signing, key: privateKeyPem((await material()).key) } });
    },
    expected: /signing\.key does not belong to .*signing\.certificate/,
  },
] as const;

for (const { name, damage, expected } of damages) {
  test(`a state file that is ${name} is an error, and stays`, async (t) => {
    const stateDir = await temporaryFolder(t);
    await opened(stateDir);
    const file = path.join(stateDir, "authority.json");
    const damaged = await damage(await readFile(file, "utf8"));
    await writeFile(file, damaged);
    const result = await tried(stateDir);
    assert.match(result.ok ? "" : result.problems[0]!.message, expected);
    assert.equal(await readFile(file, "utf8"), damaged);
  });
}

test("an authority that has expired while nobody looked is an error with a date", async (t) => {
  const stateDir = await temporaryFolder(t);
  await opened(stateDir, { lifetimeMs: dayMs });
  const result = await tried(stateDir, { now: () => nowMs + 2 * dayMs });
  assert.match(result.ok ? "" : result.problems[0]!.message, /expired at 2030-06-02T12:00:00Z/);
});

test("a kept file's wide mode is narrowed at the next change", async (t) => {
  const stateDir = await temporaryFolder(t);
  const authority = await opened(stateDir);
  const file = path.join(stateDir, "authority.json");
  await chmod(file, 0o644);
  await authority.rotateTo(await material());
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});

/** Shared by several, as on a cluster: a write counts only over what was read last. */
class SharedText implements AuthorityStorage {
  readonly place = "a test";
  readonly givenPlace = undefined;
  readonly #shared: { text?: string; version: number };
  #seen = 0;

  constructor(shared: { text?: string; version: number }) {
    this.#shared = shared;
  }

  async read(): Promise<string | undefined> {
    this.#seen = this.#shared.version;
    return this.#shared.text;
  }

  async write(state: string): Promise<boolean> {
    if (this.#seen !== this.#shared.version) return false;
    this.#shared.text = state;
    this.#seen = this.#shared.version += 1;
    return true;
  }

  readonly readGiven = async () => undefined;
}

test("of several that start at once one makes the authority, and all follow what one of them changes", async () => {
  const shared = { version: 0 };
  const open = async () => {
    const result = await openAuthority({
      storage: new SharedText(shared),
      trustDomain: "cluster.local",
      now: () => nowMs,
    });
    assert.ok(result.ok);
    return result;
  };
  const [first, second, third] = await Promise.all([open(), open(), open()]);
  assert.equal([first, second, third].filter(({ created }) => created).length, 1);
  const bundles = () => new Set([first, second, third].map(({ authority }) => authority.trustBundlePem)).size;
  assert.equal(bundles(), 1);
  assert.equal(await first.authority.rotateTo(await material(), { introduceMs: hourMs, overlapMs: dayMs }), true);
  assert.equal(bundles(), 2);
  // It has not heard of the change yet, and does what it was asked to over what there is now.
  const wanted = await material();
  assert.equal(await second.authority.rotateTo(wanted, { introduceMs: hourMs, overlapMs: dayMs }), true);
  const { state } = second.authority;
  assert.equal(state.phase === "introducing" && state.signFromMs, nowMs + hourMs);
  assert.deepEqual([await first.authority.adopt(), await first.authority.adopt()], [true, false]);
  assert.deepEqual([await third.authority.adopt(), bundles()], [true, 1]);
});

test("what is kept no more is kept again", async () => {
  const shared: { text?: string; version: number } = { version: 0 };
  const result = await openAuthority({ storage: new SharedText(shared), trustDomain: "cluster.local" });
  assert.ok(result.ok);
  const { text } = shared;
  delete shared.text;
  assert.equal(await result.authority.adopt(), false);
  assert.equal(shared.text, text);
});
