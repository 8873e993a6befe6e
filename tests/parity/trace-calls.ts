// Makes a whole table of calls on both proxies at once, and finds the access-log lines of each.
import { waitFor } from "../tools/processes.ts";
import { type AccessLogLine, withoutPort } from "./access-log-line.ts";
import type { Call } from "./call.ts";
import type { Trace } from "./compare.ts";
import { type Outcome, type ParityMesh, proxies, type Proxy } from "./parity-mesh.ts";

/** Envoy keeps a connection that it refuses open for a second, so that its answer is read: many wait side by side. */
const callsAtOnce = 24;

/** The address that a call comes from, so that no two have one port. */
function addressOf(from: number | string, index: number): string {
  return typeof from === "string" ? from : `127.${from}.${(index + 1) >> 8}.${(index + 1) & 255}`;
}

/** A call that failed keeps its reason: it is its row alone that fails. */
type CallResult = { readonly outcome: Outcome } | { readonly error: Error };

async function makeCalls(
  mesh: ParityMesh,
  calls: readonly Call[],
  from: number | string,
  proxy: Proxy,
): Promise<CallResult[]> {
  const results: CallResult[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next; index < calls.length; index = next) {
      next += 1;
      results[index] = await mesh.makeCall(calls[index]!, proxy, addressOf(from, index)).then(
        (outcome) => ({ outcome }),
        (error: Error) => ({ error }),
      );
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, worker));
  return results;
}

type AccessLog = ReadonlyMap<string, readonly AccessLogLine[]>;

function linesOf(result: CallResult, log: AccessLog): readonly AccessLogLine[] {
  if ("error" in result) return [];
  const { client } = result.outcome;
  // An address that was taken from X-Forwarded-For has no port.
  return log.get(client) ?? log.get(`${withoutPort(client)}:0`) ?? [];
}

/** All lines of a proxy's pods, once those of every call are there; Envoy writes them in batches. */
async function accessLogOf(mesh: ParityMesh, results: readonly CallResult[], proxy: Proxy): Promise<AccessLog> {
  const log = new Map<string, AccessLogLine[]>();
  const readAll = async (): Promise<boolean> => {
    for (const role of ["gateway", "outbound"] as const) {
      for (const [client, lines] of await mesh.accessLog(role, proxy)) log.set(client, lines);
    }
    return results.every(
      (result) => "error" in result || linesOf(result, log).length >= Math.max(1, result.outcome.answers.length),
    );
  };
  // A line that never comes fails its own row.
  await waitFor(readAll, { what: "the access logs", intervalMs: 500 }).catch(() => undefined);
  return log;
}

export interface Traces {
  /** Throws why there is none. */
  of(proxy: Proxy, index: number): Trace;
}

/**
 * Makes all calls on both proxies, and reads what their access logs say of them. `from` keeps the clients' addresses of
 * two tables apart: 127.<from>.x.y, or an address for all.
 */
export async function traceCalls(mesh: ParityMesh, calls: readonly Call[], from: number | string): Promise<Traces> {
  const results = new Map<Proxy, readonly CallResult[]>();
  const logs = new Map<Proxy, AccessLog>();
  await Promise.all(
    proxies.map(async (proxy) => {
      results.set(proxy, await makeCalls(mesh, calls, from, proxy));
      logs.set(proxy, await accessLogOf(mesh, results.get(proxy)!, proxy));
    }),
  );
  return {
    of: (proxy, index) => {
      const result = results.get(proxy)![index]!;
      if ("error" in result) throw new Error(`${proxy}: ${result.error.message}`);
      return { outcome: result.outcome, lines: linesOf(result, logs.get(proxy)!) };
    },
  };
}
