// What every Prometheus client library tells of its own process, by the names that they share
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics).
import { readdirSync, readFileSync } from "node:fs";
import type { Counter, Gauge } from "./metric.ts";
import type { MetricRegistry } from "./metrics.ts";

export class ProcessMetrics {
  readonly #cpuSeconds: Counter;
  readonly #residentBytes: Gauge;
  /** Those that Linux tells; missing elsewhere. */
  readonly #virtualBytes: Gauge | undefined;
  readonly #openFiles: Gauge | undefined;

  /** `prefix` stands before each name, where another process is beside this one (`istio_agent_`). */
  constructor(registry: MetricRegistry, prefix = "") {
    const gauge = (name: string, help: string): Gauge => registry.gauge({ name: `${prefix}process_${name}`, help });
    this.#cpuSeconds = registry.counter({
      name: `${prefix}process_cpu_seconds_total`,
      help: "Seconds of CPU that the process has taken, of the user and of the system.",
    });
    this.#residentBytes = gauge("resident_memory_bytes", "Memory of the process that is in RAM.");
    gauge("start_time_seconds", "Unix time at which the process began.").set(performance.timeOrigin / 1000);
    const isLinux = virtualBytes() !== undefined;
    this.#virtualBytes = isLinux ? gauge("virtual_memory_bytes", "Addresses that the process has.") : undefined;
    this.#openFiles = isLinux ? gauge("open_fds", "Open file descriptors.") : undefined;
    if (isLinux) gauge("max_fds", "File descriptors that the process may have open.").set(maxOpenFiles());
  }

  /** To be called before they are shown. */
  refresh(): void {
    const { user, system } = process.cpuUsage();
    this.#cpuSeconds.value = (user + system) / 1e6;
    this.#residentBytes.set(process.memoryUsage.rss());
    this.#virtualBytes?.set(virtualBytes() ?? 0);
    // A process that has none left cannot look, either: what it had last stays.
    const open = this.#openFiles && openFiles();
    if (open !== undefined) this.#openFiles?.set(open);
  }
}

function virtualBytes(): number | undefined {
  const kibibytes = /^VmSize:\s+(\d+) kB$/m.exec(textOf("/proc/self/status") ?? "")?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}

function maxOpenFiles(): number {
  const limit = /^Max open files\s+(\d+)/m.exec(textOf("/proc/self/limits") ?? "")?.[1];
  return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
}

function openFiles(): number | undefined {
  try {
    // One of them is the folder's own.
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return undefined;
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
