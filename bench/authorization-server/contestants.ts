// The two servers of the bench, started fresh for a round: ours with SQLite, flushed at each commit, and
// node-oidc-provider with its memory adapter.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createClient, createUser, loadConfig, openDatabase, passwordHasher } from "@tulle/authorization-server";
import type { StartedProcess } from "../../tests/tools/processes.ts";
import { freePorts, startProcess } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";

export const clientSecret = "bench-secret-bench-secret-bench-secret-1";
export const redirectUri = "https://client.example/cb";
export const password = "bench password";

export interface Contestant {
  readonly name: string;
  /** Relative to the issuer. */
  readonly authorizePath: string;
  readonly start: (core: number) => Promise<RunningContestant>;
}

export interface RunningContestant {
  readonly issuer: string;
  readonly process: StartedProcess;
  stop(): Promise<void>;
}

export const contestants: readonly Contestant[] = [
  { name: "oidc-provider, memory", authorizePath: "/auth", start: startPeer },
  { name: "Tulle, SQLite", authorizePath: "/authorize", start: startOurs },
];

async function startOurs(core: number): Promise<RunningContestant> {
  const dataDir = await mkdtemp(path.join(tmpdir(), "tulle-auth-bench-"));
  const [port] = await freePorts(1);
  const argv = ["--data-dir", dataDir, "--port", String(port), "--log-level", "warning"];
  const { config } = loadConfig({ argv, environment: {} });
  if (config === undefined) throw new Error("the bench's configuration is wrong");
  const database = await openDatabase(config);
  const api = "https://api.example";
  const client = { id: "app", redirectUris: [redirectUri], scope: "api", audiences: [api], secret: clientSecret };
  const created = await createClient(database, { issuerIsHttp: true }, client);
  if (created.problems !== undefined) throw new Error(created.problems.join());
  const hasher = passwordHasher({ memoryKib: 8192, iterations: 1, parallelism: 1 });
  await createUser(database, hasher, { name: "ann", password });
  await database.close();
  const main = path.resolve(import.meta.dirname, "../../packages/authorization-server/src/main.ts");
  const [command, args] = onCore(core, process.execPath, [main, ...argv]);
  const started = await startProcess(command, args, { name: "authorization-server" });
  await started.waitForOutput(/Ready/);
  return {
    issuer: config.issuer,
    process: started,
    stop: async () => {
      await started.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function startPeer(core: number): Promise<RunningContestant> {
  const [port] = await freePorts(1);
  const main = path.join(import.meta.dirname, "oidc-provider-peer.mjs");
  const [command, args] = onCore(core, process.execPath, [main]);
  const env = { PORT: String(port), CLIENT_SECRET: clientSecret, NODE_ENV: "production" };
  const started = await startProcess(command, args, { name: "oidc-provider", env });
  await started.waitForOutput(/Ready/);
  return { issuer: `http://localhost:${port}`, process: started, stop: async () => void (await started.stop()) };
}
