// How a workload comes by its certificate, keeps it and renews it: against a real authority that is asked without a
// network, with the clock in hand.
import assert from "node:assert/strict";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { type CertificateAuthority, createAuthority, type WorkloadCertificate } from "@tulle/identity";
import { type LogEntry, Logging } from "@tulle/telemetry";
import { ManualClock } from "@tulle/timing/testing";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { goodToken, newAuthority, type TestAuthority, testAuthority, web } from "../testing/test-authority.ts";
import type { SignCertificate, SigningAnswer } from "./certificate-signer.ts";
import { parseRoots } from "./trusted-roots.ts";
import { WorkloadIdentity } from "./workload-identity.ts";

const startMs = Date.parse("2030-06-01T12:00:00Z");
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

class Scene {
  readonly clock = new ManualClock(startMs);
  readonly asked: string[] = [];
  readonly entries: LogEntry[] = [];
  readonly published: WorkloadCertificate[] = [];
  mesh!: TestAuthority;
  authority!: CertificateAuthority;
  identity!: WorkloadIdentity;
  /** In place of what the authority would answer. */
  answer: ((by: "token" | "certificate") => SigningAnswer | undefined) | undefined;
  /** In place of the authority's present ones. */
  rootsOfAnswers: string | undefined;
  static async set(context: TestContext): Promise<Scene> {
    const scene = new Scene();
    scene.mesh = await testAuthority(context, { now: () => scene.clock.nowMs() });
    scene.authority = scene.mesh.authority;
    return scene;
  }

  get keptFile(): string {
    return path.join(this.mesh.folder, "workload-certificate.json");
  }

  async start(): Promise<void> {
    const rootsPem = parseRoots(await readFile(this.mesh.rootsFile, "utf8"));
    assert.ok(rootsPem.ok);
    this.identity = await WorkloadIdentity.start({
      spiffeId: web,
      file: this.keptFile,
      tokenFile: this.mesh.tokenFile,
      rootsFile: this.mesh.rootsFile,
      rootsPem: rootsPem.pem,
      sign: this.#sign,
      log: new Logging({ sink: (entry) => this.entries.push(entry) }).logger("identity"),
      clock: this.clock,
      random: () => 0.5,
    });
    this.identity.follow((certificate) => this.published.push(certificate));
    const { identity } = this;
    this.mesh.cleanUp.defer(() => identity.close());
  }

  /** Resolves when the published certificates are that many. */
  async publishes(count: number): Promise<WorkloadCertificate> {
    await waitFor(() => this.published.length >= count, { what: `${count} certificates`, details: () => this.log() });
    assert.equal(this.published.length, count);
    return this.published.at(-1)!;
  }

  async asks(count: number): Promise<void> {
    await waitFor(() => this.asked.length >= count, { what: `${count} requests`, details: () => this.log() });
  }

  async fails(count: number): Promise<void> {
    await waitFor(() => this.identity.metrics.failures.value >= count, { what: `${count} failures` });
  }

  log(): string {
    return this.entries.map(({ level, message }) => `${level} ${message}`).join("\n");
  }

  readonly #sign: SignCertificate = ({ csrPem, credentials }) => {
    const { kind } = credentials;
    this.asked.push(kind);
    const other = this.answer?.(kind);
    if (other !== undefined) return Promise.resolve(other);
    if (kind === "token" && credentials.token !== goodToken) return Promise.resolve(refusal("not this mesh's token"));
    const signed = this.authority.signWorkload({ csrPem, identity: web });
    assert.ok(signed.ok);
    const { chainPem } = signed;
    return Promise.resolve({ ok: true, chainPem, rootsPem: this.rootsOfAnswers ?? this.authority.trustBundlePem });
  };
}

const refusal = (reason: string): SigningAnswer => ({ ok: false, kind: "credentials", reason });
const away = (): SigningAnswer => ({ ok: false, kind: "other", reason: "nobody is there" });

test("the first certificate is had for a token, and lies on disk for its owner alone", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const certificate = await scene.publishes(1);
  assert.deepEqual(scene.asked, ["token"]);
  assert.deepEqual(certificate.spiffeId, web);
  await scene.identity.close();
  assert.equal((await stat(scene.keptFile)).mode & 0o777, 0o600);
});

test("a certificate that is kept serves the next start, with nobody to ask", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const { leaf } = await scene.publishes(1);
  await scene.identity.close();
  scene.answer = away;
  scene.clock.pass(hourMs);
  await scene.start();
  assert.equal((await scene.publishes(2)).leaf.serial, leaf.serial);
  assert.equal(scene.asked.length, 1);
});

const notUsed = [
  {
    name: "a kept file that is damaged",
    spoil: (scene: Scene) => writeFile(scene.keptFile, "{"),
    expected: /does not hold a workload's certificate/,
  },
  {
    name: "a kept certificate that has expired",
    spoil: (scene: Scene) => Promise.resolve(scene.clock.pass(2 * dayMs)),
    expected: /expired/,
  },
  {
    name: "a kept certificate of a mesh that was set up anew",
    spoil: async (scene: Scene) => {
      scene.authority = await newAuthority(() => scene.clock.nowMs());
      await writeFile(scene.mesh.rootsFile, scene.authority.trustBundlePem);
    },
    expected: /the kept certificate is not used/,
  },
];

for (const { name, spoil, expected } of notUsed) {
  test(`${name} is told of and replaced`, async (context) => {
    const scene = await Scene.set(context);
    await scene.start();
    const { leaf } = await scene.publishes(1);
    await scene.identity.close();
    await spoil(scene);
    await scene.start();
    assert.notEqual((await scene.publishes(2)).leaf.serial, leaf.serial);
    assert.match(scene.log(), expected);
  });
}

test("at half life there is a new key and a new certificate, for a token that was rewritten", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const first = await scene.publishes(1);
  scene.clock.pass(11.5 * hourMs);
  assert.equal(scene.asked.length, 1);
  scene.clock.pass(hourMs);
  const second = await scene.publishes(2);
  assert.notEqual(second.keyPem, first.keyPem);
  assert.deepEqual(scene.asked, ["token", "token"]);
});

test("a token that is believed no more gives way to the present certificate", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  await scene.publishes(1);
  await writeFile(scene.mesh.tokenFile, "another.token.entirely");
  scene.clock.pass(12.5 * hourMs);
  await scene.publishes(2);
  assert.deepEqual(scene.asked, ["token", "token", "certificate"]);
});

test("without a token file the first request is not made, and renewals show the certificate", async (context) => {
  const scene = await Scene.set(context);
  await rm(scene.mesh.tokenFile);
  await scene.start();
  await scene.fails(1);
  assert.match(scene.log(), /there is no token to ask with: .*token cannot be read \(ENOENT\)/);
  await writeFile(scene.mesh.tokenFile, goodToken);
  scene.clock.pass(1000);
  await scene.publishes(1);
  await rm(scene.mesh.tokenFile);
  scene.clock.pass(12.5 * hourMs);
  await scene.publishes(2);
  assert.deepEqual(scene.asked, ["token", "certificate"]);
});

test("an authority that is away is asked again and again, and the time that is left is told of", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const { leaf } = await scene.publishes(1);
  scene.answer = away;
  // A step of the clock lets one request begin; its failure sets the next.
  const letPass = async (untilMs: number): Promise<void> => {
    while (scene.clock.nowMs() < untilMs) {
      const before = scene.identity.metrics.failures.value;
      const requests = scene.identity.metrics.requests.value;
      scene.clock.pass(10 * 60_000);
      if (scene.identity.metrics.requests.value > requests) await scene.fails(before + 1);
    }
  };
  await letPass(startMs + 13 * hourMs);
  assert.doesNotMatch(scene.log(), /should have been renewed/);
  await letPass(startMs + 17 * hourMs);
  assert.match(scene.log(), /warning the certificate should have been renewed long ago: nobody is there/);
  await letPass(startMs + 22 * hourMs);
  assert.match(scene.log(), /error the certificate is about to expire/);
  await letPass(startMs + 25 * hourMs);
  assert.match(scene.log(), /critical the certificate has expired, peers refuse it/);
  assert.equal(scene.identity.current?.leaf.serial, leaf.serial);
  const metrics = scene.identity.metrics.render("prometheus");
  assert.match(metrics, /istio_agent_cert_expiry_seconds\{resource_name="default"\} -\d+/);
  assert.match(metrics, /istio_agent_num_failed_outgoing_requests\{request_type="csr"\} \d\d/);
  scene.answer = undefined;
  scene.clock.pass(60_000);
  await scene.publishes(2);
  assert.match(scene.identity.metrics.render("prometheus"), /tulle_agent_certificate_failures_in_a_row 0/);
});

test("roots that change go to whoever follows, with the certificate as it was", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const first = await scene.publishes(1);
  const next = await createAuthority({ trustDomain: "cluster.local", nowMs: scene.clock.nowMs() });
  await scene.authority.rotateTo(next, { introduceMs: hourMs, overlapMs: dayMs });
  scene.identity.takeRoots(scene.authority.trustBundlePem);
  const second = await scene.publishes(2);
  assert.equal(second.leaf.serial, first.leaf.serial);
  assert.equal(second.roots.length, 2);
  assert.match(scene.log(), /the trusted roots have changed/);
});

test("roots that the present certificate does not lead to bring a new one at once", async (context) => {
  const scene = await Scene.set(context);
  await scene.start();
  const first = await scene.publishes(1);
  scene.authority = await newAuthority(() => scene.clock.nowMs());
  scene.identity.takeRoots(scene.authority.trustBundlePem);
  const second = await scene.publishes(2);
  assert.notEqual(second.leaf.serial, first.leaf.serial);
  assert.equal(second.rootsPem, scene.authority.trustBundlePem);
});

test("the roots of a stream that stands outlast an answer that was on its way", async (context) => {
  const scene = await Scene.set(context);
  const before = scene.authority.trustBundlePem;
  await scene.start();
  await scene.publishes(1);
  const next = await createAuthority({ trustDomain: "cluster.local", nowMs: scene.clock.nowMs() });
  await scene.authority.rotateTo(next, { introduceMs: hourMs, overlapMs: dayMs });
  scene.identity.takeRoots(scene.authority.trustBundlePem);
  await scene.publishes(2);
  scene.rootsOfAnswers = before;
  scene.clock.pass(12.5 * hourMs);
  assert.equal((await scene.publishes(3)).roots.length, 2);
});

test("an identity that was not asked for is refused", async (context) => {
  const scene = await Scene.set(context);
  const elsewhere = await newAuthority(() => scene.clock.nowMs());
  scene.answer = () => ({ ok: true, chainPem: "", rootsPem: elsewhere.trustBundlePem });
  await scene.start();
  await scene.fails(1);
  assert.match(scene.log(), /the authority's certificate is no good here/);
  assert.equal(scene.identity.current, undefined);
});
