// The servers of the bench: ours with SQLite, flushed at each commit, and
// node-oidc-provider with its memory adapter.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { StartedProcess } from "../../tests/tools/processes.ts";
import { freePorts, startProcess } from "../../tests/tools/processes.ts";
import { onCore } from "../measure/on-core.ts";
import type { ScenarioOptions } from "../scenario.ts";
import { importFrom, nodeOf, type Tree } from "../tree.ts";

export const clientSecret = "bench-secret-bench-secret-bench-secret-1";
export const redirectUri = "https://client.example/cb";
export const password = "bench password";

/** The peer signs by ES256; RS256 is what clients expect by default, and costs more. */
const algorithms = ["ES256", "RS256"];

export interface Contestant {
  readonly name: string;
  readonly store: string;
  /** Introspection and the key set are measured too: once, since the algorithm is no matter there. */
  readonly isTulle: boolean;
  /** Relative to the issuer. */
  readonly authorizePath: string;
  readonly start: (core: number) => Promise<RunningContestant>;
}

export interface RunningContestant extends AsyncDisposable {
  readonly issuer: string;
  readonly process: StartedProcess;
}

type AuthorizationServer = typeof import("@tulle/authorization-server");

export const peer: Contestant = {
  name: "oidc-provider",
  store: "memory",
  isTulle: false,
  authorizePath: "/auth",
  start: startPeer,
};

export function contestants({ trees, proxies }: ScenarioOptions): readonly Contestant[] {
  const ours = trees.flatMap((tree) =>
    algorithms.map((algorithm) => ({
      name: algorithm === "ES256" ? tree.name : `${tree.name} ${algorithm}`,
      store: "SQLite",
      isTulle: algorithm === "ES256",
      authorizePath: "/authorize",
      start: (core: number): Promise<RunningContestant> => startOurs(tree, core, algorithm),
    })),
  );
  return [peer, ...ours].filter(({ name }) => proxies?.includes(name) ?? true);
}

async function startOurs(tree: Tree, core: number, algorithm: string): Promise<RunningContestant> {
  const { createClient, createUser, loadConfig, openDatabase, passwordHasher } = (await importFrom(
    tree,
    "packages/authorization-server/src/index.ts",
  )) as AuthorizationServer;
  const dataDir = await mkdtemp(path.join(tmpdir(), "tulle-auth-bench-"));
  const [port] = await freePorts(1);
  const argv = [
    "--data-dir",
    dataDir,
    "--port",
    String(port),
    "--log-level",
    "warning",
    "--signing-algorithm",
    algorithm,
  ];
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
  const main = path.join(tree.folder, "packages/authorization-server/src/main.ts");
  const [command, args] = onCore(core, nodeOf(tree), [main, ...argv]);
  const started = await startProcess(command, args, { name: `authorization server of ${tree.name}` });
  await started.waitForOutput(/Ready/);
  return {
    issuer: config.issuer,
    process: started,
    [Symbol.asyncDispose]: async () => {
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
  return {
    issuer: `http://localhost:${port}`,
    process: started,
    [Symbol.asyncDispose]: async () => void (await started.stop()),
  };
}
