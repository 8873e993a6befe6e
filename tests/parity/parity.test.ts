// Tulle's proxy and a stock Envoy, driven by the same control plane with the same resources, answer the same calls alike.
// The mesh is `mesh/`, the calls are in the tables beside this file; `/server_info` proves which proxy stood in each pod.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { type AccessLogLine, withoutPort } from "./access-log-line.ts";
import { type Call, roles } from "./call.ts";
import { comparable } from "./compare.ts";
import { connectionCalls } from "./connection-calls.ts";
import { checkExpected } from "./expectation.ts";
import { type Outcome, ParityMesh, proxies, type Proxy } from "./parity-mesh.ts";
import { routingCalls } from "./routing-calls.ts";

const calls: readonly Call[] = [...routingCalls, ...connectionCalls];
const callsAtOnce = 6;

let mesh: ParityMesh;

before(
  async () => {
    mesh = await ParityMesh.start();
  },
  { timeout: 120_000 },
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

/** The address that a call comes from, so that no two have one port. */
const addressOf = (index: number): string => `127.99.${(index + 1) >> 8}.${(index + 1) & 255}`;

/** A call that failed keeps its reason: it is its row alone that fails. */
type CallResult = { readonly outcome: Outcome } | { readonly error: Error };

async function makeCalls(proxy: Proxy): Promise<CallResult[]> {
  const results: CallResult[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next; index < calls.length; index = next) {
      next += 1;
      results[index] = await mesh.makeCall(calls[index]!, proxy, addressOf(index)).then(
        (outcome) => ({ outcome }),
        (error: Error) => ({ error }),
      );
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, worker));
  return results;
}

type AccessLog = ReadonlyMap<string, readonly AccessLogLine[]>;

function linesOf(call: Call, result: CallResult, log: AccessLog): readonly AccessLogLine[] {
  if ("error" in result) return [];
  const { client } = result.outcome;
  // An address that was taken from X-Forwarded-For has no port.
  return log.get(client) ?? log.get(`${withoutPort(client)}:0`) ?? [];
}

/** All lines of a proxy's pods, once those of every call are there; Envoy writes them in batches. */
async function accessLogOf(proxy: Proxy, results: readonly CallResult[]): Promise<AccessLog> {
  const log = new Map<string, AccessLogLine[]>();
  const readAll = async (): Promise<boolean> => {
    for (const role of ["gateway", "outbound"] as const) {
      for (const [client, lines] of await mesh.accessLog(role, proxy)) log.set(client, lines);
    }
    return calls.every(
      (call, index) =>
        "error" in results[index]! ||
        call.expected.unlogged === true ||
        linesOf(call, results[index]!, log).length >= results[index]!.outcome.answers.length,
    );
  };
  // A line that never comes fails its own row.
  await waitFor(readAll, { what: "the access logs", timeoutMs: 12_000, intervalMs: 500 }).catch(() => undefined);
  return log;
}

describe("the same answers on both proxies", () => {
  const results = new Map<Proxy, readonly CallResult[]>();
  const logs = new Map<Proxy, AccessLog>();

  before(
    async () => {
      await Promise.all(
        proxies.map(async (proxy) => {
          results.set(proxy, await makeCalls(proxy));
          logs.set(proxy, await accessLogOf(proxy, results.get(proxy)!));
        }),
      );
    },
    { timeout: 120_000 },
  );

  for (const [index, call] of calls.entries()) {
    test(call.name, () => {
      const traces = proxies.map((proxy) => {
        const result = results.get(proxy)![index]!;
        if ("error" in result) throw new Error(`${proxy}: ${result.error.message}`);
        return { proxy, outcome: result.outcome, lines: linesOf(call, result, logs.get(proxy)!) };
      });
      const [fromTulle, fromEnvoy] = traces.map((trace) =>
        comparable(call, trace, mesh.podOf(call.role, trace.proxy), trace.proxy),
      );
      assert.deepEqual(fromTulle, fromEnvoy);
      for (const trace of traces) checkExpected(call, trace);
    });
  }
});
