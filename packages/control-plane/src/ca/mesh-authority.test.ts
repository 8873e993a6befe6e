// The authority through time: phases of a change of root on the wire, the control plane's own certificate, and what is
// said before an authority ends. The clock is moved by hand.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { type TestContext, test } from "node:test";
import type { Clock } from "@tulle/timing";
import { create } from "@bufbuild/protobuf";
import {
  type AuthorityStorage,
  authorityText,
  type CheckedAuthority,
  createAuthority,
  createCsr,
  generateKey,
  parseCertificates,
  privateKeyPem,
  writeSecretFile,
} from "@tulle/identity";
import { type LogEntry, Logging, MetricRegistry } from "@tulle/telemetry";
import { type ClientTls, connectAds } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { caMetrics } from "./ca-metrics.ts";
import { MeshAuthority } from "./mesh-authority.ts";
import { authorityFolder } from "./open-security.ts";
import { serveProvenWorkloads } from "./serve-proven-workloads.ts";
import { web, webNode } from "../testing/proven-world.ts";

const hourMs = 3_600_000;
const serverName = "tulled.tulle-system.svc";

/** Stands still until it is moved. */
class ManualTime {
  /** A whole second, as the times of certificates are. */
  nowMs = Math.floor(Date.now() / 1000) * 1000;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  readonly clock: Clock = {
    nowMs: () => this.nowMs,
    after: (delayMs, callback) => {
      const timer = { atMs: this.nowMs + delayMs, callback };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      };
    },
  };

  /** Once the authority waits again: what it does in its own time must not see two moves as one. */
  async move(ms: number): Promise<void> {
    await waitFor(() => this.#timers.length > 0, { what: "the authority to wait" });
    this.nowMs += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.nowMs);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.nowMs);
    for (const { callback } of due) callback();
  }
}

const rootFile = (stateDirectory: string): string => path.join(stateDirectory, "ca/root-cert.pem");

interface Opened {
  readonly authority: MeshAuthority;
  readonly time: ManualTime;
  readonly log: LogEntry[];
  readonly registry: MetricRegistry;
  readonly stateDirectory: string;
}

async function openAt(
  context: TestContext,
  time: ManualTime = new ManualTime(),
  stateDirectory?: string,
  more: Partial<Parameters<typeof MeshAuthority.open>[0]> = {},
): Promise<Opened> {
  const folder = stateDirectory ?? temporaryFolder("tulle-ca-");
  const log: LogEntry[] = [];
  const registry = new MetricRegistry();
  const authority = await MeshAuthority.open({
    storage: authorityFolder(folder),
    trustDomain: "cluster.local",
    clock: time.clock,
    now: () => time.nowMs,
    log: new Logging({ sink: (entry) => void log.push(entry) }).logger("ca"),
    metrics: caMetrics(registry),
    ...more,
  });
  context.after(() => authority.close());
  return { authority, time, log, registry, stateDirectory: folder };
}

async function issue({ signing }: MeshAuthority): Promise<NonNullable<ClientTls["identity"]>> {
  const key = await generateKey("P-256");
  const signed = signing.signWorkload({ csrPem: createCsr({ key, spiffeId: web }), identity: web });
  assert.ok(signed.ok, signed.ok ? "" : signed.message);
  return { privateKeyPem: privateKeyPem(key), certChainPem: signed.chainPem };
}

test("new roots are heard of first, sign next, and the old ones go last", async (context) => {
  const { authority, time, log, stateDirectory } = await openAt(context);
  const server = await serveProvenWorkloads({
    server: { address: { host: "127.0.0.1", port: 0 } },
    handlers: {
      onConnect: (connection) => connection.set("CDS", new Map()),
      onSubscribe: () => undefined,
      onDisconnect: () => undefined,
    },
    authority,
    judgeToken: async () => ({ ok: false, message: "none is believed" }),
    pods: {
      get: () => ({ serviceAccount: "web", uid: undefined, labels: {} }),
      count: () => 1,
      machineOf: () => undefined,
      follow: () => undefined,
    },
    metrics: caMetrics(new MetricRegistry()),
    log: new Logging({ level: "off" }).logger("ca"),
  });
  context.after(() => server.close());
  assert.ok("port" in server.address);
  const target = `https://127.0.0.1:${server.address.port}`;
  const connect = (identity: NonNullable<ClientTls["identity"]>, rootsPem: string) => {
    const seen = { answers: 0, failures: 0 };
    const client = connectAds({
      target,
      node: create(NodeSchema, { id: webNode }),
      tls: () => ({ rootsPem, serverName, identity }),
      backOff: { baseMs: 50, maxMs: 500 },
      handlers: {
        onResponse: () => {
          seen.answers += 1;
          return [];
        },
        onState: (state) => {
          if (state.kind === "waiting") seen.failures += 1;
        },
      },
    });
    context.after(() => client.close());
    client.subscribe("CDS", "*");
    return seen;
  };
  const served = (identity: NonNullable<ClientTls["identity"]>, rootsPem: string, what: string) => {
    const seen = connect(identity, rootsPem);
    return waitFor(() => seen.answers > 0, { what });
  };
  const roots = () => authority.signing.trustBundlePem;
  const phaseIs = (phase: string) =>
    waitFor(() => authority.signing.state.phase === phase, { what: `the phase ${phase}` });

  const oldRoot = roots();
  const old = await issue(authority);
  const standing = connect(old, oldRoot);
  await waitFor(() => standing.answers > 0, { what: "the first stream" });

  // Both together stay within the two minutes by which certificates are backdated: OpenSSL has a clock of its own.
  const times = { introduceMs: 50_000, overlapMs: 50_000 };
  await assert.rejects(authority.rotateRoot(times), /would drop the old root under certificates that live \d+ s/);
  assert.ok(await authority.rotateRoot(times, { force: true }));
  const both = roots();
  assert.equal(await readFile(rootFile(stateDirectory), "utf8"), both);
  await served(
    await issue(authority),
    oldRoot,
    "a certificate of the old authority, by one who has not heard of the new",
  );

  await time.move(50_000);
  await phaseIs("retiring");
  const next = await issue(authority);
  await served(next, both, "a certificate of the new authority");
  await served(old, both, "a certificate of the old authority, while its root is trusted");

  await time.move(50_000);
  await phaseIs("steady");
  const newRoot = roots();
  await waitFor(async () => (await readFile(rootFile(stateDirectory), "utf8")) === newRoot, { what: "the file" });
  assert.ok(!newRoot.includes(oldRoot) && both.includes(newRoot));
  await served(next, newRoot, "a certificate of the new authority under its root alone");
  const late = connect(old, newRoot);
  await waitFor(() => late.failures > 0, { what: "a certificate of the old authority to be refused" });
  assert.deepEqual(standing, { answers: 1, failures: 0 }, "a stream of before goes on");
  assert.deepEqual(
    log.filter(({ message }) => message === "the mesh's root changes").map(({ fields }) => fields?.["phase"]),
    ["introducing", "retiring", "steady"],
  );
});

test("the control plane's own certificate is renewed at the half of its life", async (context) => {
  const { authority, time } = await openAt(context);
  const serials: string[] = [];
  const note = () => {
    const parsed = parseCertificates(authority.credentials.certChainPem);
    assert.ok(parsed.ok);
    serials.push(parsed.certificates[0]!.serial);
    return parsed.certificates[0]!;
  };
  assert.deepEqual(
    note().names.map(({ value }) => value),
    ["spiffe://cluster.local/ns/tulle-system/sa/tulled", "tulled.tulle-system.svc", "istiod.istio-system.svc"],
  );
  authority.follow(note);
  await time.move(11 * hourMs);
  await time.move(hourMs);
  await waitFor(() => serials.length === 2, { what: "the new certificate" });
  assert.notEqual(serials[0], serials[1]);
});

test("the control plane's own certificate is made anew when the clock is set back", async (context) => {
  const early = new ManualTime();
  const { authority: first, stateDirectory } = await openAt(context, early);
  first.close();
  const time = new ManualTime();
  time.nowMs = early.nowMs + 10 * hourMs;
  const { authority } = await openAt(context, time, stateDirectory);
  const before = authority.credentials.certChainPem;
  // Until the next look.
  await time.move(60_000);
  time.nowMs -= 9 * hourMs;
  await time.move(8 * hourMs);
  await waitFor(() => authority.credentials.certChainPem !== before, { what: "another certificate" });
  const parsed = parseCertificates(authority.credentials.certChainPem);
  assert.ok(parsed.ok && parsed.certificates[0]!.notBeforeMs <= time.nowMs);
});

test("an authority that ends is spoken of long before, once a day", async (context) => {
  const time = new ManualTime();
  const stateDirectory = temporaryFolder("tulle-ca-");
  const dayMs = 24 * hourMs;
  const signing = await createAuthority({ trustDomain: "cluster.local", lifetimeMs: 100 * dayMs, nowMs: time.nowMs });
  await writeSecretFile(path.join(stateDirectory, "ca/authority.json"), authorityText({ phase: "steady", signing }));
  const { authority, log, registry } = await openAt(context, time, stateDirectory);
  const spoken = () =>
    log.filter(({ message }) => message.startsWith("a certificate of the authority ends")).map(({ level }) => level);
  assert.deepEqual(spoken(), []);
  assert.equal(await readFile(rootFile(stateDirectory), "utf8"), authority.signing.trustBundlePem, "made when missing");
  await time.move(91 * dayMs);
  await waitFor(() => spoken().length === 2, { what: "the root and the intermediate" });
  assert.deepEqual(spoken(), ["warning", "warning"]);
  await waitFor(() => /^citadel_server_root_cert_expiry_seconds 777600$/m.test(registry.page(undefined).text), {
    what: "nine days in the metric",
  });
  await time.move(60_000);
  await time.move(8 * dayMs);
  await waitFor(() => spoken().length === 4, { what: "the next day" });
  assert.deepEqual(spoken().slice(2), ["error", "error"]);
});

/** Shared by several control planes, as on a cluster, with what an operator has given. */
class SharedState {
  text: string | undefined;
  given: CheckedAuthority | undefined;
  readonly listeners = new Set<() => void>();

  /** What one control plane sees of it; `isAway` keeps it from reading. */
  seenBy(one: { isAway: boolean }): AuthorityStorage {
    let seen: string | undefined;
    return {
      place: "a test",
      givenPlace: "a test's",
      read: async () => {
        if (one.isAway) throw new Error("the server is away");
        return (seen = this.text);
      },
      write: async (state) => {
        if (seen !== this.text) return false;
        // As an API server does: what changes nothing is told to nobody.
        if (state === this.text) return true;
        seen = this.text = state;
        for (const hear of this.listeners) hear();
        return true;
      },
      readGiven: async () => this.given,
      follow: (listener) => {
        this.listeners.add(listener);
        return () => void this.listeners.delete(listener);
      },
    };
  }
}

test("a change that cannot be read when it is told is read a little later", async (context) => {
  const shared = new SharedState();
  const other = { isAway: false };
  const leader = await openAt(context, new ManualTime(), undefined, { storage: shared.seenBy({ isAway: false }) });
  const follower = await openAt(context, new ManualTime(), undefined, {
    storage: shared.seenBy(other),
    leadership: { isLeader: false, leader: "another", follow: () => () => undefined },
  });
  const phases = () => [leader, follower].map(({ authority }) => authority.signing.state.phase);
  other.isAway = true;
  await leader.authority.rotateRoot();
  await waitFor(() => follower.log.some(({ message }) => /cannot be read/.test(message)), { what: "a failure" });
  assert.deepEqual(phases(), ["introducing", "steady"]);
  other.isAway = false;
  await follower.time.move(5_000);
  await waitFor(() => phases()[1] === "introducing", { what: "the change" });
});

test("what was given while nobody led is taken up by whoever leads next", async (context) => {
  const shared = new SharedState();
  const leadership = { isLeader: false, leader: undefined, hear: () => undefined as void };
  const follow = (listener: () => void) => {
    leadership.hear = listener;
    return () => undefined;
  };
  const { authority } = await openAt(context, new ManualTime(), undefined, {
    storage: shared.seenBy({ isAway: false }),
    leadership: Object.assign(leadership, { follow }),
  });
  const material = await createAuthority({ trustDomain: "cluster.local", nowMs: authority.now() });
  shared.given = { ok: true, material };
  for (const hear of shared.listeners) hear();
  await waitFor(() => authority.isBroughtAlong, { what: "it to hear" });
  assert.equal(authority.signing.state.phase, "steady");
  leadership.isLeader = true;
  leadership.hear();
  await waitFor(() => authority.signing.state.phase === "introducing", { what: "the change" });
});
