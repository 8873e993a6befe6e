// Whether the kernel can still track the connections of a captured workload: without a place in its table a new one is
// dropped, which looks like a network that loses packets. Said once, and counted.
import { readFileSync } from "node:fs";
import path from "node:path";
import type { Logger, MetricRegistry } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";

export interface ConntrackWatchOptions {
  /** `/proc`: what it shows is of this process's network. */
  readonly folder?: string;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  readonly clock: Clock;
}

export interface ConntrackState {
  readonly entries: number;
  /** 0 = none. */
  readonly limit: number;
  /** Connections that found no place, since the network began. */
  readonly dropped: number;
}

const intervalMs = 5000;
/** Of the limit: it is told at the one, and over below the other. */
const nearlyFull = 0.9;
const relieved = 0.8;

/** Undefined where the kernel tracks nothing. */
export function readConntrack(folder = "/proc"): ConntrackState | undefined {
  const number = (name: string): number =>
    Number(readFileSync(path.join(folder, "sys/net/netfilter", `nf_conntrack_${name}`), "latin1"));
  try {
    const statistics = readFileSync(path.join(folder, "net/stat/nf_conntrack"), "latin1");
    return { entries: number("count"), limit: number("max"), dropped: sumOfColumn(statistics, "drop") };
  } catch {
    return undefined;
  }
}

/** A line of names, and a line of hexadecimal numbers for each processor. */
function sumOfColumn(table: string, name: string): number {
  const [names = [], ...rows] = table
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  const column = names.indexOf(name);
  return rows.reduce((sum, row) => sum + (Number.parseInt(row[column] ?? "0", 16) || 0), 0);
}

/** Looks every five seconds until it is disposed of. */
export function watchConntrack({ folder, log, metrics, clock }: ConntrackWatchOptions): Disposable {
  const [entries, limit] = [
    metrics.gauge({ name: "tulle_agent_conntrack_entries", help: "Connections that the kernel tracks." }),
    metrics.gauge({ name: "tulle_agent_conntrack_limit", help: "Connections that it tracks at most." }),
  ];
  const dropped = metrics.counter({
    name: "tulle_agent_conntrack_dropped_total",
    help: "New connections that were dropped since the kernel could track no more.",
  });
  let before = readConntrack(folder)?.dropped ?? 0;
  let standing: "free" | "nearly full" | "full" = "free";
  let cancel = (): void => undefined;
  const look = (): void => {
    cancel = clock.after(intervalMs, look);
    const state = readConntrack(folder);
    if (state === undefined) return;
    entries.set(state.entries);
    limit.set(state.limit);
    const lost = Math.max(0, state.dropped - before);
    before = state.dropped;
    dropped.add(lost);
    const filling = state.limit === 0 ? 0 : state.entries / state.limit;
    const facts = { entries: state.entries, limit: state.limit };
    if (lost > 0 && standing !== "full") {
      standing = "full";
      log.error("new connections are dropped: the kernel can track no more (nf_conntrack_max)", facts);
    } else if (filling >= nearlyFull && standing === "free") {
      standing = "nearly full";
      log.warning("the kernel can hardly track more connections (nf_conntrack_max)", facts);
    } else if (filling < relieved && lost === 0 && standing !== "free") {
      standing = "free";
      log.info("the kernel can track connections again", facts);
    }
  };
  look();
  return { [Symbol.dispose]: () => cancel() };
}
