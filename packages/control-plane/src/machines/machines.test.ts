// Machines that join over the real port: what a token is good for, what it is not, and what becomes of the entry.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { parseResource } from "@tulle/config";
import type { IssuedToken, MachinesResponse, TokenRequest } from "@tulle/config/api";
import { createCsr, generateKey, parseJoinToken } from "@tulle/identity";
import {
  type CertificateAnswer,
  createCertificate,
  joinMesh,
  type JoinRequest,
  leaveMesh,
  reportMachine,
} from "@tulle/xds";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { ManifestControlPlaneOptions } from "../run-manifest-control-plane.ts";
import {
  identityFrom,
  openStream,
  type ProvenWorld,
  provenWorld,
  serverName,
  webNode,
} from "../testing/proven-world.ts";
import { maxCertificates, maxReports } from "./machine-desk.ts";

const machineAddress = "10.9.0.4";

async function meshWithGroups(
  context: TestContext,
  options: Partial<ManifestControlPlaneOptions> = {},
): Promise<ProvenWorld> {
  const world = await provenWorld(context, {
    joinAddress: { host: "127.0.0.1", port: 0 },
    machineGraceMs: 50,
    ...options,
  });
  await applyGroup(world, "ledger", "ledger");
  await applyGroup(world, "payroll", "payroll");
  return { ...world, target: `https://127.0.0.1:${world.running.joinAddress!.port}` };
}

async function applyGroup({ running }: ProvenWorld, name: string, serviceAccount: string): Promise<void> {
  const { resource, findings } = parseResource({
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadGroup",
    metadata: { name, namespace: "shop" },
    spec: {
      metadata: { labels: { app: name } },
      template: { serviceAccount, ports: { http: 9080 }, locality: "eu/1" },
      probe: { httpGet: { port: 9080 } },
    },
  });
  assert.ok(resource, JSON.stringify(findings));
  await running.store.apply(resource);
}

async function tokenFor(world: ProvenWorld, asked: Partial<TokenRequest> = {}): Promise<IssuedToken> {
  const request = { group: "ledger", namespace: "shop", lifetimeSeconds: 60, addresses: [machineAddress], ...asked };
  const answer = await world.ask("/api/v1/machines/tokens", { method: "POST", body: JSON.stringify(request) });
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(answer.body) as IssuedToken;
}

async function machinesOf(world: ProvenWorld): Promise<MachinesResponse> {
  return JSON.parse((await world.ask("/api/v1/machines")).body) as MachinesResponse;
}

async function join(world: ProvenWorld, { token }: Pick<IssuedToken, "token">, other: Partial<JoinRequest> = {}) {
  const parsed = parseJoinToken(token);
  assert.ok(parsed);
  const key = await generateKey("P-256");
  const rootsPem = await world.rootsPem();
  const { id: tokenId, secret } = parsed;
  const answer = await joinMesh(
    { target: world.target, tls: () => ({ rootsPem, serverName }) },
    { tokenId, secret, csrPem: createCsr({ key }), address: machineAddress, hostname: "box", ...other },
  );
  return { answer, key };
}

/** A machine that has joined: its name, and how it asks. */
async function joined(world: ProvenWorld, asked: Partial<TokenRequest> = {}, other: Partial<JoinRequest> = {}) {
  const { answer, key } = await join(world, await tokenFor(world, asked), other);
  assert.ok(answer.ok, JSON.stringify(answer));
  const { rootsPem, ...identity } = identityFrom(answer.value.certChain, key);
  const asking = { target: world.target, tls: () => ({ rootsPem, serverName, identity }) };
  const { name } = answer.value;
  return { name, identity, asking, nodeId: `sidecar~${machineAddress}~${name}.shop~shop.svc.cluster.local` };
}

async function renew(asking: Parameters<typeof reportMachine>[0], serviceAccount: string): Promise<CertificateAnswer> {
  const spiffeId = { trustDomain: "cluster.local", namespace: "shop", serviceAccount };
  return createCertificate({ ...asking, csrPem: createCsr({ key: await generateKey("P-256"), spiffeId }) });
}

const entries = ({ running }: ProvenWorld) => running.store.list("WorkloadEntry", "shop");
const health = (world: ProvenWorld): readonly string[] =>
  entries(world).map(({ status }) => `${status?.conditions?.[0]?.status} ${status?.conditions?.[0]?.reason}`);

/** As machines do, which tell how they are again and again: whoever vanished before has no entry. */
async function reportUntilHealthy(world: ProvenWorld, asking: Parameters<typeof reportMachine>[0]): Promise<void> {
  const isHealthy = async (): Promise<boolean> => {
    await reportMachine(asking, { address: machineAddress, isReady: true });
    return health(world)[0] === "True Ready";
  };
  await waitFor(isHealthy, { what: "a healthy entry" });
}

test("a machine joins as its group says, is well while it is there and says so, and goes after the grace", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  const report = await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  assert.ok(report.ok, JSON.stringify(report));
  assert.deepEqual([report.value.entry, report.value.labels], ["ledger-10.9.0.4", { app: "ledger" }]);
  await waitFor(() => health(world).length === 0, { what: "the entry of a machine that never connects to go" });
  const stream = await openStream(t, world, { ...machine, type: "LDS" });
  await reportUntilHealthy(world, machine.asking);
  const [entry] = entries(world);
  assert.deepEqual(entry?.spec, {
    serviceAccount: "ledger",
    ports: { http: 9080 },
    locality: "eu/1",
    address: machineAddress,
  });
  assert.equal(entry.metadata.labels?.["app"], "ledger");
  await reportMachine(machine.asking, { address: machineAddress, isReady: false, reason: "the probe fails" });
  assert.deepEqual(health(world), ["False NotReady"]);
  await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  stream.client.close();
  await waitFor(() => entries(world).length === 0, { what: "the entry to go" });
  const listed = async () => (await machinesOf(world)).machines.map((each) => `${each.state} ${each.entry}`);
  assert.deepEqual(await listed(), ["disconnected "]);
  await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  assert.equal(entries(world).length, 1);
  assert.deepEqual(await listed(), ["disconnected ledger-10.9.0.4"]);
  await reportMachine(machine.asking, { address: machineAddress, isReady: true, isStopping: true });
  assert.equal(entries(world).length, 0);
});

test("another address makes another entry in the place of the one before", async (t) => {
  const world = await meshWithGroups(t, { machineGraceMs: 3_600_000 });
  const machine = await joined(world, { addresses: [machineAddress, "10.9.0.5"] });
  await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  await reportMachine(machine.asking, { address: "10.9.0.5", isReady: true });
  assert.deepEqual(
    entries(world).map(({ metadata }) => metadata.name),
    ["ledger-10.9.0.5"],
  );
  const elsewhere = await reportMachine(machine.asking, { address: "10.9.0.6", isReady: true });
  assert.equal(elsewhere.ok ? "" : elsewhere.status, "PERMISSION_DENIED");
});

test("a token is refused that was used, has ended, was revoked or changed, and all of it is written down", async (t) => {
  const world = await meshWithGroups(t);
  const detailsOf = async (token: IssuedToken, other: Partial<JoinRequest> = {}): Promise<string> => {
    const { answer } = await join(world, token, other);
    return answer.ok ? "joined" : answer.details;
  };
  const token = await tokenFor(world);
  // Both at once: one is too late.
  const both = await Promise.all([detailsOf(token), detailsOf(token)]);
  assert.equal(both.filter((each) => each === "joined").length, 1);
  assert.match(await detailsOf(token), /has been used already, by ledger-[0-9a-f]{8}: each is for one machine/);
  const revoked = await tokenFor(world);
  await world.ask(`/api/v1/machines/tokens/${revoked.id}`, { method: "DELETE" });
  assert.match(await detailsOf(revoked), /was revoked/);
  const short = await tokenFor(world, { lifetimeSeconds: 1 });
  await waitFor(async () => (await machinesOf(world)).tokens.find(({ id }) => id === short.id)?.state === "expired", {
    what: "the end of a token",
  });
  assert.match(await detailsOf(short), /has expired/);
  const good = await tokenFor(world);
  assert.match(await detailsOf(good, { secret: "another" }), /not one of this mesh/);
  assert.match(await detailsOf(good, { tokenId: (await tokenFor(world, { group: "payroll" })).id }), /not one of this/);
  assert.match(await detailsOf(good, { address: "10.9.0.9" }), /for a machine at 10.9.0.4, not at 10.9.0.9/);
  assert.equal(parseJoinToken(`${good.token.slice(0, -9)}${good.token.slice(-8)}`), undefined);
  const { events } = await machinesOf(world);
  assert.ok(events.filter(({ what }) => what === "refused").length >= 5);
  // Neither the log nor the state holds a secret.
  const kept = await readFile(path.join(world.stateDirectory, "machines.json"), "utf8");
  for (const { token: text } of [token, revoked, short, good]) {
    const secret = parseJoinToken(text)!.secret;
    assert.ok(!kept.includes(secret) && !JSON.stringify(world.log).includes(secret));
  }
});

test("an address is its own: not another machine's, a pod's, nor one that nobody reaches", async (t) => {
  const world = await meshWithGroups(t, { machineGraceMs: 3_600_000 });
  const machine = await joined(world);
  await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  const { answer } = await join(world, await tokenFor(world));
  assert.match(answer.ok ? "" : answer.details, /10.9.0.4 is the WorkloadEntry ledger-10.9.0.4.shop's/);
  const within = await tokenFor(world, { addresses: ["10.9.0.0/24"] });
  const { answer: mapped } = await join(world, within, { address: "::FFFF:10.9.0.4" });
  assert.match(mapped.ok ? "" : mapped.details, /10.9.0.4 is the WorkloadEntry/, "in another way of writing");
  const { answer: other } = await join(world, await tokenFor(world, { addresses: [] }), { address: "10.9.0.7" });
  assert.match(other.ok ? "" : other.details, /calls from 127.0.0.1, so it cannot say that it is at 10.9.0.7/);
  const { answer: loopback } = await join(world, await tokenFor(world, { addresses: [] }), { address: "127.0.0.1" });
  assert.match(loopback.ok ? "" : loopback.details, /no address that others reach/);
});

test("who tries and tries is made to wait, and others join", async (t) => {
  const world = await meshWithGroups(t);
  const token = await tokenFor(world);
  const tries = await Promise.all(Array.from({ length: 40 }, () => join(world, token, { secret: "guess" })));
  const told = tries.map(({ answer }) => (answer.ok ? "" : answer.status));
  assert.ok(told.includes("RESOURCE_EXHAUSTED") && told.every((each) => each !== ""));
  const { events } = await machinesOf(world);
  assert.ok(events.length < 20, `${events.length} events`);
  const good = await join(world, token);
  assert.ok(good.answer.ok, "who has a good token and the same address joins");
  const other = await tokenFor(world);
  const bad = await Promise.all(Array.from({ length: 12 }, () => join(world, other, { csrPem: "none" })));
  const last = bad.map(({ answer }) => (answer.ok ? "" : answer.status));
  assert.deepEqual(new Set(last), new Set(["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"]));
});

test("a machine's certificate opens its own configuration alone, renews, and ends with the machine", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  const second = await joined(world, { addresses: ["10.9.0.5"] }, { address: "10.9.0.5" });
  // The same account, and so the same SPIFFE id.
  const stolen = await openStream(t, world, { identity: machine.identity, nodeId: second.nodeId });
  await waitFor(() => stolen.failures.length > 0, { what: "a refusal" });
  assert.match(stolen.failures[0]!, /the certificate is not the one of ledger-/);
  const key = await generateKey("P-256");
  const renewed = await createCertificate({
    ...machine.asking,
    csrPem: createCsr({ key, spiffeId: { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "ledger" } }),
  });
  assert.ok(renewed.ok, JSON.stringify(renewed));
  const { rootsPem, ...identity } = identityFrom(renewed.certChain, key);
  const stream = await openStream(t, world, { identity, nodeId: machine.nodeId });
  await waitFor(() => stream.responses.length > 0, { what: "configuration" });
  const asking = { target: world.target, tls: () => ({ rootsPem, serverName, identity }) };
  assert.ok((await leaveMesh(asking)).ok);
  await waitFor(() => stream.failures.length > 0, { what: "the stream to end" });
  assert.match(stream.failures[0]!, /the machine has left, or was removed/);
  const after = await reportMachine(asking, { isReady: true, address: machineAddress });
  assert.ok(after.ok && after.value.isGone === true);
  const again = await createCertificate({ ...asking, csrPem: createCsr({ key }) });
  assert.match(again.ok ? "" : again.details, /has left, or was removed/);
  assert.deepEqual(
    (await machinesOf(world)).machines.map(({ name }) => name),
    [second.name],
  );
});

test("a machine's certificate renews for its own identity alone, whatever is asked for", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  await joined(world, { group: "payroll", addresses: ["10.9.0.5"] }, { address: "10.9.0.5" });
  const answer = await renew(machine.asking, "payroll");
  assert.equal(answer.ok ? "" : answer.status, "PERMISSION_DENIED", JSON.stringify(answer));
  // A request that names nobody gets what the machine is.
  const key = await generateKey("P-256");
  const own = await createCertificate({ ...machine.asking, csrPem: createCsr({ key }) });
  assert.ok(own.ok);
  assert.match(new X509Certificate(own.certChain[0]!).subjectAltName ?? "", /\/ns\/shop\/sa\/ledger$/);
});

test("a pod's certificate reports no machine", async (t) => {
  const world = await meshWithGroups(t);
  const rootsPem = await world.rootsPem();
  const answer = await reportMachine(
    { target: world.target, tls: () => ({ rootsPem, serverName }) },
    { isReady: true },
  );
  assert.equal(answer.ok ? "" : answer.status, "UNAUTHENTICATED");
});

test("a control plane that starts again knows its machines, and keeps their entries meanwhile", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  const stream = await openStream(t, world, machine);
  await reportMachine(machine.asking, { address: machineAddress, isReady: true });
  await reportUntilHealthy(world, machine.asking);
  stream.client.close();
  // The stream's end and the control plane's are one here: killed, it would have seen none.
  await world.running.close();
  const kept = await readFile(path.join(world.stateDirectory, "machines.json"), "utf8");
  assert.ok(kept.includes(machine.name));
  const again = await meshWithGroups(t, { stateDirectory: world.stateDirectory });
  const target = again.target;
  const report = await reportMachine({ ...machine.asking, target }, { address: machineAddress, isReady: true });
  assert.ok(report.ok, JSON.stringify(report));
  assert.equal(entries(again).length, 1);
});

test("where machines can join no more, the certificate of one passes for no pod's of its account", async (t) => {
  const world = await meshWithGroups(t);
  await applyGroup(world, "clerks", "web");
  const clerk = (at: string) => joined(world, { group: "clerks", addresses: [at] }, { address: at });
  const [kept, removed] = [await clerk("10.9.0.4"), await clerk("10.9.0.5")];
  const removal = await world.ask(`/api/v1/machines/members/shop/${removed.name}`, { method: "DELETE" });
  assert.equal(removal.status, 200, removal.body);
  await world.running.close();
  const again = await provenWorld(t, { stateDirectory: world.stateDirectory });
  const answer = await renew({ ...removed.asking, target: again.target }, "web");
  assert.match(answer.ok ? "" : answer.details, /has left, or was removed/);
  const stolen = await openStream(t, again, { identity: kept.identity, nodeId: webNode });
  await waitFor(() => stolen.failures.length > 0, { what: "a refusal" });
  assert.match(stolen.failures[0]!, /the certificate is not the one of web-1/);
});

test("a machine that renews and renews has a limit", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  await world.running.close();
  const file = path.join(world.stateDirectory, "machines.json");
  const saved = JSON.parse(await readFile(file, "utf8")) as { machines: { certificates: Record<string, number> }[] };
  const untilMs = Date.now() + 3_600_000;
  for (let more = maxCertificates - 2; more > 0; more -= 1)
    saved.machines[0]!.certificates[`made-up-${more}`] = untilMs;
  await writeFile(file, JSON.stringify(saved));
  const { target } = await meshWithGroups(t, { stateDirectory: world.stateDirectory });
  const renewed = await renew({ ...machine.asking, target }, "ledger");
  assert.ok(renewed.ok, JSON.stringify(renewed));
  const answer = await renew({ ...machine.asking, target }, "ledger");
  assert.equal(answer.ok ? "" : answer.status, "RESOURCE_EXHAUSTED");
});

test("a machine that reports and reports is made to wait, and others are heard", async (t) => {
  const world = await meshWithGroups(t);
  const machine = await joined(world);
  const other = await joined(world, { addresses: ["10.9.0.5"] }, { address: "10.9.0.5" });
  const tell = (reason: string) => reportMachine(machine.asking, { address: machineAddress, isReady: false, reason });
  for (let told = 0; told < maxReports; told += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => tell(`reason ${told + index}`)));
    assert.ok(answers.every(({ ok }) => ok));
  }
  const refused = await tell("one more");
  assert.ok(!refused.ok);
  assert.match(refused.details, /has reported 600 times within a minute: wait$/);
  assert.ok((await reportMachine(other.asking, { address: "10.9.0.5", isReady: true })).ok);
});
