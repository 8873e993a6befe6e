// Certificates of twenty seconds under traffic for two minutes, and a change of the root in between: nothing that a
// client could notice, nor could a stream of gRPC that is open all the while.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { Agent } from "node:http";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import type { AuthorityStatus } from "@tulle/config/api";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { catalogAtGateway, describeCalls, GrpcLoad } from "./grpc-load.ts";
import { type Pod, ShopInstance } from "./shop-instance.ts";

const certificateLifeSeconds = 20;
const trafficMs = 120_000;
const requestsPerSecond = 500;
const workers = 8;
const grpcLoad = { seed: 1, unaryPerSecond: 10, streams: 4, questionsPerSecond: 5, watches: 2, timeoutMs: 60_000 };

interface ShownCertificate {
  readonly serial: string;
  readonly issuer: string;
}

/** What the pod's proxy shows to a client of the mesh; the handshake need not end well for that. */
function shownBy({ address }: Pod, port: number): Promise<ShownCertificate> {
  const { promise, resolve, reject } = Promise.withResolvers<ShownCertificate>();
  const socket = connect({ host: address, port, ALPNProtocols: ["istio"], rejectUnauthorized: false }, () => {
    const { serialNumber, issuer } = socket.getPeerCertificate();
    resolve({ serial: serialNumber, issuer: JSON.stringify(issuer) });
    socket.destroy();
  });
  socket.on("error", reject);
  return promise;
}

for (const proxy of ["tulle", "envoy"]) {
  test(`certificates and the root change under traffic through ${proxy}, and no request fails`, (context) =>
    changeEverything(context, proxy));
}

async function changeEverything(context: TestContext, proxy: string): Promise<void> {
  await using shop = await ShopInstance.start({
    args: ["--workload-cert-ttl", `${certificateLifeSeconds}s`, "--proxy", proxy],
    env: { TULLE_ENVOY: await envoyPath() },
    prepare: (folder) => writeFile(path.join(folder, "by-grpc.yaml"), catalogAtGateway()),
  });
  const catalog = await shop.pod("catalog-v1");
  const outcomes = new Map<string, number>();
  const shown: ShownCertificate[] = [];
  const until = performance.now() + trafficMs;
  const runs = (): boolean => performance.now() < until;

  using agent = disposableAgent();
  const ask = async (): Promise<void> => {
    const outcome = await shop.get("/api/catalog", {}, agent.http).then(
      ({ status }) => String(status),
      (error: Error) => error.message,
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  };
  const worker = async (): Promise<void> => {
    const intervalMs = (1000 * workers) / requestsPerSecond;
    for (let nextMs = performance.now(); runs(); nextMs = Math.max(nextMs + intervalMs, performance.now() - 1000)) {
      // Requests per second are what this test is about; it waits for nothing.
      await pause(Math.max(0, nextMs - performance.now()));
      await ask();
    }
  };
  const look = async (): Promise<void> => {
    while (runs()) {
      const certificate = await shownBy(catalog, 3000);
      if (shown.at(-1)?.serial !== certificate.serial) shown.push(certificate);
      await pause(500);
    }
  };
  const status = async (): Promise<AuthorityStatus> =>
    JSON.parse(await shop.mustTulle("ca", "show", "-o", "json")) as AuthorityStatus;
  const changeRoot = async (): Promise<AuthorityStatus> => {
    const before = await status();
    // Two seconds more than a certificate lives, for whoever was about to ask for one.
    const seconds = String(certificateLifeSeconds + 2);
    await shop.mustTulle("ca", "rotate-root", "--introduce-seconds", seconds, "--overlap-seconds", seconds);
    await waitFor(async () => (await status()).phase === "steady", {
      what: "the old root to be dropped",
      timeoutMs: 90_000,
      intervalMs: 1000,
    });
    return before;
  };
  const calls = GrpcLoad.begin(shop, grpcLoad);
  const [before] = await Promise.all([changeRoot(), look(), ...Array.from({ length: workers }, worker)]);
  const told = await calls.end();
  const after = await status();
  const total = [...outcomes.values()].reduce((sum, count) => sum + count, 0);
  context.diagnostic(`${total} requests, ${shown.length} certificates of one pod`);
  assert.deepEqual([...outcomes.keys()], ["200"], JSON.stringify([...outcomes]));
  // Connections outlive the certificates that they began with.
  context.diagnostic(describeCalls(told));
  assert.deepEqual(told.failed, [], describeCalls(told));
  assert.ok(told.unary > 0 && told.answersOfStreams > 0);
  assert.ok(shown.length >= 6, `${shown.length} certificates were seen, five changes are expected`);
  assert.notDeepEqual(after.roots, before.roots);
  assert.equal(after.roots.length, 1);
  assert.equal(new Set(shown.map(({ issuer }) => issuer)).size, 2, "both authorities were seen on the wire");
}

function disposableAgent(): Disposable & { readonly http: Agent } {
  const http = new Agent({ keepAlive: true, maxSockets: workers });
  return { http, [Symbol.dispose]: () => http.destroy() };
}
