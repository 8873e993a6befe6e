// Runs a stock Envoy beside the agent, as a child that starts and ends with it.
import { type ChildProcess, spawn } from "node:child_process";
import { connect, type Socket } from "node:net";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseListenDescriptors, WayIn, type WayInOptions } from "@tulle/listening";
import type { DrainTimes } from "@tulle/proxy";
import { adminAddress as adminAddressOf } from "../bootstrap/bootstrap.ts";
import { adminRequest } from "./admin-request.ts";
import { type ProxyMetrics, type RunningDataPlane, type StartDataPlane, takenStats } from "./data-plane.ts";

export const startEnvoy: StartDataPlane = async ({ settings, bootstrapPath, env, logging }) => {
  const log = logging.logger("agent");
  const args = ["-c", bootstrapPath, "--concurrency", String(settings.concurrency), "-l", settings.logLevel];
  const drainSeconds = String(Math.ceil(settings.listenerDrainMs / 1000));
  // Several Envoys of one machine would otherwise meet in the shared memory of "base id 0".
  args.push("--disable-hot-restart", "--drain-time-s", drainSeconds);
  // As Istio's agent: by Envoy's own default few clients are asked to leave at first, and those that stay are cut.
  args.push("--drain-strategy", "immediate");
  // As Istio's agent: Envoy's own default would keep access-log lines back for ten seconds.
  args.push("--file-flush-interval-msec", "1000");
  const child = spawn(settings.envoyCommand, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  const started = Promise.withResolvers<void>();
  child.once("spawn", () => started.resolve());
  child.once("error", (error) => started.reject(new Error(`cannot run ${settings.envoyCommand}: ${error.message}`)));
  child.once("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal ?? "SIGKILL"]));
  await started.promise;
  // An agent that is told to end at once leaves nobody behind who keeps its ports.
  process.once("exit", () => child.kill("SIGKILL"));
  log.info("envoy runs", { pid: child.pid });
  // It listens at the same address as its admin page: at the pod's own, or at all of a network of its own.
  const host = adminAddressOf(settings);
  const descriptors = parseListenDescriptors(env["TULLE_LISTEN_FDS"]);
  const wayIn = { descriptors, connect: connectFor(host, settings.podAddress), log };
  return new EnvoyProcess({ child, ended, adminAddress: host, wayIn });
};

/** Where connections to a loopback address come from unless they are bound. */
const usualClient = "127.0.0.1";

/**
 * Envoy cannot inherit sockets. It sees the client's address where that is one of this machine's own network alone, and
 * the pod's in the place of any other: no connection can be made from there, and nobody is to pass for a local program.
 */
function connectFor(host: string, podAddress: string): WayInOptions["connect"] {
  return (port, client): Socket => {
    const to = { host, port, allowHalfOpen: true };
    // A bound connection has a port of the machine for itself alone; no more are bound than need it.
    if (client === usualClient) return connect(to);
    return connect({ ...to, localAddress: client.startsWith("127.") ? client : podAddress });
  };
}

// After SIGTERM Envoy ends within moments; what does not is stuck.
const killAfterMs = 5_000;
const pollMs = 100;

interface EnvoyParts {
  readonly child: ChildProcess;
  readonly ended: Promise<number>;
  readonly adminAddress: string;
  readonly wayIn: WayInOptions;
}

class EnvoyProcess implements RunningDataPlane {
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;
  readonly #adminAddress: string;
  readonly #wayIn: Promise<WayIn | undefined>;
  #isStopping = false;

  constructor({ child, ended, adminAddress, wayIn }: EnvoyParts) {
    this.#child = child;
    this.ended = ended;
    this.#adminAddress = adminAddress;
    this.#wayIn = this.#openWhenReady(wayIn);
  }

  /** Connections wait until there is somebody who takes them. */
  async #openWhenReady(options: WayInOptions): Promise<WayIn | undefined> {
    if (options.descriptors.size === 0) return undefined;
    while (!(await this.isReady())) {
      if (this.#isStopping || !this.#runs) return undefined;
      await sleep(pollMs);
    }
    return this.#isStopping ? undefined : new WayIn(options);
  }

  get #runs(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async isReady(): Promise<boolean> {
    return (await this.#admin("GET", "/ready")) !== undefined;
  }

  async metrics(): Promise<ProxyMetrics | undefined> {
    const text = await this.#admin("GET", "/stats/prometheus");
    return text === undefined ? undefined : { format: "prometheus", text };
  }

  async taken(): Promise<number | undefined> {
    const stats = await this.#admin("GET", `/stats?filter=${encodeURIComponent(takenStats.source)}`);
    return stats?.split("\n").reduce((sum, line) => sum + Number(line.split(": ")[1] ?? 0), 0);
  }

  async stop({ leastMs, mostMs }: DrainTimes): Promise<void> {
    const deadline = performance.now() + mostMs;
    this.#isStopping = true;
    // Draining needs the admin page; without it Envoy is ended at once, which is the best that is left.
    const draining = await this.#admin("POST", "/drain_listeners?graceful&skip_exit");
    if (draining !== undefined) {
      await Promise.race([sleep(leastMs), this.ended]);
      (await this.#wayIn)?.close();
      await this.#finishWork(deadline);
    }
    if (this.#runs) this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), killAfterMs);
    await this.ended;
    clearTimeout(timer);
  }

  async #finishWork(deadline: number): Promise<void> {
    while (performance.now() < deadline && this.#runs) {
      const stats = await this.#admin("GET", "/stats?filter=downstream_cx_active");
      if (stats === undefined || !hasWork(stats)) return;
      await sleep(pollMs);
    }
  }

  async #admin(method: "GET" | "POST", path: string): Promise<string | undefined> {
    return adminRequest(this.#adminAddress, method, path).then(
      ({ status, body }) => (status === 200 ? body : undefined),
      () => undefined,
    );
  }
}

/** Whether a listener of the mesh, rather than the admin page that was asked, still has connections. */
function hasWork(stats: string): boolean {
  return stats.split("\n").some((line) => {
    const [name = "", value = "0"] = line.split(": ");
    return name.startsWith("listener.") && !name.startsWith("listener.admin.") && Number(value) > 0;
  });
}
