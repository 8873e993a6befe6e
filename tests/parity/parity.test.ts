// Tulle's proxy and a stock Envoy, driven by the same control plane with the same resources, answer the same calls
// alike. The mesh is `mesh/`, the calls are in the tables beside this file; `/server_info` proves which proxy stood in
// each pod.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { versions } from "../tools/http2-client.ts";
import { waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { type Call, reasonsForHttp1, roles, rows } from "./call.ts";
import { comparable } from "./compare.ts";
import { connectionCalls, inboundRows } from "./connection-calls.ts";
import { checkExpected } from "./expectation.ts";
import { http2Calls } from "./http2-calls.ts";
import { loopbackCalls } from "./loopback-calls.ts";
import { ParityMesh, proxies } from "./parity-mesh.ts";
import { allowedDeviation, countedCalls, manyRequests, requestsTotal, spreads } from "./repeated-calls.ts";
import { routingCalls, routingRows } from "./routing-calls.ts";
import { stricterCalls } from "./stricter-calls.ts";
import { traceCalls, type Traces } from "./trace-calls.ts";
import { waitForStatus } from "./wait-for-status.ts";

const calls: readonly Call[] = [...routingCalls, ...connectionCalls, ...http2Calls];

let mesh: ParityMesh;

before(
  async () => {
    mesh = await ParityMesh.start();
  },
  { timeout: 240_000 },
);
after(() => mesh?.stop());

test("each pod runs the proxy that its row says", async () => {
  for (const role of ["gateway", "outbound"] as const) {
    for (const proxy of proxies) {
      const info = JSON.parse(await mesh.admin(role, proxy, "/server_info")) as { version: string };
      assert.equal(/tulle/i.test(info.version), proxy === "tulle", `${role} ${proxy}: ${info.version}`);
    }
  }
});

test("the table has at least 80 calls, 30 a role", () => {
  assert.ok(calls.length >= 80, String(calls.length));
  for (const role of roles) assert.ok(calls.filter((call) => call.role === role).length >= 30, role);
});

test("no call is there twice", () => {
  assert.deepEqual(
    calls.map(({ name }) => name).filter((name, index, names) => names.indexOf(name) !== index),
    [],
  );
});

test("rows of HTTP/1.1 alone say why", (t) => {
  for (const [why, count] of reasonsForHttp1([...routingRows, ...inboundRows])) t.diagnostic(`${count} × ${why}`);
});

describe("the same answers on both proxies", () => {
  let traces: Traces;
  before(
    async () => {
      traces = await traceCalls(mesh, calls, 99);
    },
    { timeout: 240_000 },
  );

  for (const [index, call] of calls.entries()) {
    test(call.name, () => {
      const [fromTulle, fromEnvoy] = proxies.map((proxy) =>
        comparable(call, traces.of(proxy, index), mesh.podOf(call.role, proxy), proxy),
      );
      assert.deepEqual(fromTulle, fromEnvoy);
      for (const proxy of proxies) checkExpected(call, traces.of(proxy, index));
    });
  }
});

describe("differences on purpose", () => {
  let traces: Traces;
  before(
    async () => {
      const made = stricterCalls.map(({ call }) => call);
      traces = await traceCalls(mesh, made, 98);
    },
    { timeout: 240_000 },
  );

  for (const [index, { call, expected }] of stricterCalls.entries()) {
    for (const proxy of proxies) {
      test(`${call.name}, ${proxy} (${expected.why})`, () => {
        const { ours, envoys } = expected;
        checkExpected({ ...call, expected: proxy === "tulle" ? ours : envoys }, traces.of(proxy, index));
      });
    }
  }
});

describe("codes and tokens of a query stand in nobody's access log", () => {
  const secret = "not-for-logs";
  for (const [index, role] of roles.entries()) {
    const version = versions[index % versions.length]!;
    for (const [number, proxy] of proxies.entries()) {
      test(`${role}, ${proxy}, ${version}`, async () => {
        const path = `/logged?a=kept&code=${secret}&%73tate=${secret}&id_token_hint=${secret}`;
        const [call] = rows(role, [[path, path, {}, { status: 200 }, { versions: [version] }]]);
        const { client } = await mesh.makeCall(call!, proxy, `127.96.0.${number + 1}`);
        const find = async (): Promise<string | undefined> =>
          (await mesh.proxyLog(role, proxy))
            .split("\n")
            .find((each) => each.includes(client) && each.includes("/logged"));
        const line = await waitFor(find, { what: "the access-log line", intervalMs: 500 });
        assert.ok(!(await mesh.proxyLog(role, proxy)).includes(secret));
        const logged = "/logged?a=kept&code=redacted&%73tate=redacted&id_token_hint=redacted";
        // Envoy has no way to leave single parameters out.
        assert.ok(line.includes(proxy === "tulle" ? `"GET ${logged} ${version}"` : `"GET /logged ${version}"`), line);
      });
    }
  }
});

describe("clients on 127.0.0.1 are strangers too", () => {
  let traces: Traces;
  before(
    async () => {
      traces = await traceCalls(mesh, loopbackCalls, "127.0.0.1");
    },
    { timeout: 240_000 },
  );

  for (const [index, call] of loopbackCalls.entries()) {
    for (const proxy of proxies) {
      test(`${call.name}, ${proxy}`, () => checkExpected(call, traces.of(proxy, index)));
    }
  }
});

describe("requests in numbers", () => {
  const perConnection = 100;
  const client = "127.97.0.1";

  for (const { name, role, path, share, connections } of spreads) {
    for (const [proxy, version] of proxies.flatMap((each) => versions.map((spoken) => [each, spoken] as const))) {
      test(`${name}, ${proxy}, ${version}`, async () => {
        const call = manyRequests(role, path, perConnection, version);
        const outcomes = await Promise.all(
          Array.from({ length: connections }, () => mesh.makeCall(call, proxy, client)),
        );
        const seen = outcomes.flatMap(({ echoes }) => echoes.map((echo) => echo?.version));
        const total = perConnection * connections;
        const first = seen.filter((each) => each === "v1").length;
        assert.equal(first + seen.filter((each) => each === "v2").length, total);
        const deviation = Math.abs(first - total * share);
        assert.ok(deviation <= allowedDeviation(total, share), `v1: ${first} of ${total}`);
      });
    }
  }

  // A stock Envoy has no istio_requests_total; that Tulle's counts what was asked shows that no call went around it.
  for (const [index, { role, path, count, status, labels }] of countedCalls.entries()) {
    const version = versions[index % versions.length]!;
    test(`${role}: ${count} × ${path} over ${version} in istio_requests_total`, async () => {
      const total = async (): Promise<number> =>
        requestsTotal(await mesh.admin(role, "tulle", "/stats/prometheus"), labels);
      const earlier = await total();
      const { answers } = await mesh.makeCall(manyRequests(role, path, count, version), "tulle", client);
      assert.deepEqual(
        answers.map((answer) => answer.status),
        Array.from({ length: count }, () => status),
      );
      assert.equal((await total()) - earlier, count);
    });
  }
});

test("a policy that is applied and deleted takes effect on both", async () => {
  const file = join(temporaryFolder("tulle-policy-"), "closed.yaml");
  const closed = {
    apiVersion: "security.istio.io/v1",
    kind: "AuthorizationPolicy",
    metadata: { name: "closed", namespace: "parity" },
    spec: { action: "DENY", rules: [{ to: [{ operation: { paths: ["/v1/closed/*"] } }] }] },
  };
  await writeFile(file, JSON.stringify(closed));
  const statusBecomes = async (status: number): Promise<void> => {
    for (const proxy of proxies) await waitForStatus(mesh, { role: "inbound", path: "/v1/closed/x", proxy, status });
  };
  await statusBecomes(200);
  await mesh.tulle("apply", "-f", file);
  await statusBecomes(403);
  await mesh.tulle("delete", "-f", file);
  await statusBecomes(200);
});
