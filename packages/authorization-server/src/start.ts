// Puts the server together, keeps its background work going, and takes it down in order.
import type { AddressInfo } from "node:net";
import { acceptBacklog } from "@tulle/listening";
import { MetricRegistry, openMetricExporter, openTracer, ProcessMetrics } from "@tulle/telemetry";
import type { Logger } from "@tulle/telemetry";
import type { FastifyInstance } from "fastify";
import { AuditLog } from "./audit/audit-log.ts";
import type { Config } from "./config/config.ts";
import { makeKeyEncryptionKey } from "./config/key-encryption-key.ts";
import { passwordHasher } from "./crypto/passwords.ts";
import { createApp } from "./app.ts";
import { KnownDevices } from "./http/known-device.ts";
import { KeyRing } from "./keys/key-ring.ts";
import type { MakeKeyPair } from "./keys/key-store.ts";
import { keyPolicy } from "./keys/succession.ts";
import { serverMetrics } from "./metrics.ts";
import type { ServerContext } from "./server-context.ts";
import type { Database } from "./store/database.ts";
import { openDatabase } from "./store/open.ts";
import { LogoutCourier } from "./session-end/logout-courier.ts";
import { rememberIssuer } from "./store/facts.ts";
import { purgeAll } from "./store/purge.ts";
import { clientSecretThrottle } from "./store/throttles.ts";
import { GuessCounter } from "./token/guess-counter.ts";

/** As the control plane says it. */
const productVersion = "0.1.0";
const keyRefreshMs = 30_000;
const purgeIntervalMs = 1000;
const logoutIntervalMs = 1000;
/** Turns without a new code that are skipped between two looks. */
const idlePurgeTurns = 10;

export interface ServerOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Says whether requests are traced, by OpenTelemetry's names; they are not without it. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds; for tests. The database's clock decides where there is one. */
  readonly nowMs?: () => number;
  /** An open, migrated database to use instead of the configured one. */
  readonly database?: Database;
  /** For tests, which would spend most of their time on RSA keys. */
  readonly makeKeyPair?: MakeKeyPair;
}

export interface RunningServer {
  readonly context: ServerContext;
  readonly app: FastifyInstance;
  /** Begins to accept connections and the background work; answers where it listens. */
  listen(): Promise<AddressInfo>;
  /** Finishes the requests in flight, writes what is left of the audit log, and closes the store. */
  close(): Promise<void>;
}

/** Opens the store and reads or makes the keys; listens to nothing yet. */
export async function openServer(options: ServerOptions): Promise<RunningServer> {
  const { config, log } = options;
  const clock = options.nowMs === undefined ? {} : { nowMs: options.nowMs };
  const onConnectionLost = (error: Error): void => log.warning("database connection lost", { error: error.message });
  const database = options.database ?? (await openDatabase(config, { ...clock, onConnectionLost }));
  const registry = new MetricRegistry();
  const metrics = serverMetrics(registry);
  const telemetry = {
    environment: options.environment ?? {},
    serviceName: "authorization-server",
    version: productVersion,
    metrics: registry,
    log,
  };
  const tracer = openTracer(telemetry);
  const process = new ProcessMetrics(registry);
  const exporter = openMetricExporter({ ...telemetry, refresh: () => process.refresh() });
  await rememberIssuer(database, config.issuer, log);
  const encryptionKey = makeKeyEncryptionKey(config);
  const keys = new KeyRing(database, {
    policy: keyPolicy(config),
    encryptionKey,
    makeKeyPair: options.makeKeyPair,
  });
  await keys.refresh();
  const audit = new AuditLog({
    database,
    log,
    lifetimeMs: config.lifetimes.auditMs,
    dropped: metrics.auditDropped,
    nowMs: options.nowMs,
  });
  const context: ServerContext = {
    config,
    database,
    keys,
    passwords: passwordHasher({
      memoryKib: config.passwordMemoryKib,
      iterations: config.passwordIterations,
      parallelism: 1,
    }),
    devices: new KnownDevices(config, encryptionKey),
    audit,
    log,
    metrics,
    clientGuesses: new GuessCounter(clientSecretThrottle, options.nowMs),
    tracer,
  };
  const app = createApp(context);
  const courier = new LogoutCourier(context);
  const timers: NodeJS.Timeout[] = [];
  return {
    context,
    app,
    listen: async () => {
      await app.listen({ host: config.host, port: config.port, backlog: acceptBacklog });
      timers.push(...startBackgroundWork(context, courier));
      return app.server.address() as AddressInfo;
    },
    close: async () => {
      for (const timer of timers) clearInterval(timer);
      await app.close();
      await courier.close();
      await audit.flush();
      await tracer?.close();
      await exporter?.close();
      await database.close();
    },
  };
}

/** Work that no request waits for. A failure is logged and tried again at the next turn. */
function startBackgroundWork(server: ServerContext, courier: LogoutCourier): readonly NodeJS.Timeout[] {
  const repeat = (name: string, intervalMs: number, work: () => Promise<unknown>): NodeJS.Timeout => {
    let running = false;
    const timer = setInterval(() => {
      if (running) return;
      running = true;
      work()
        .catch((error: unknown) => server.log.warning(`${name} failed`, { error: String(error) }))
        .finally(() => (running = false));
    }, intervalMs);
    timer.unref();
    return timer;
  };
  let issuedBefore = 0;
  let idleTurns = 0;
  return [
    repeat("key refresh", keyRefreshMs, () => server.keys.refresh()),
    // Looked for rather than told of: sessions end in other processes too, such as the command line's.
    repeat("back-channel logout", logoutIntervalMs, () => courier.round()),
    // At once while codes are issued, so that no clean-up grows big; seldom while nothing happens.
    repeat("purge", purgeIntervalMs, async () => {
      const issued = server.metrics.codesIssued.value;
      idleTurns = issued === issuedBefore ? idleTurns + 1 : 0;
      issuedBefore = issued;
      if (idleTurns % idlePurgeTurns === 0) await purgeAll(server.database, { isIdle: idleTurns > 0 });
    }),
  ];
}
