// A whole authorization server for one test: its own store, a clock that the test moves, clients and a user on demand.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import { Logging } from "@tulle/telemetry";
import type { LogEntry } from "@tulle/telemetry";
import { createClient } from "../admin/clients.ts";
import type { NewClient } from "../admin/clients.ts";
import { createUser } from "../admin/users.ts";
import type { StoredAuditEvent } from "../audit/audit-log.ts";
import { listAuditEvents } from "../audit/audit-log.ts";
import { loadConfig } from "../config/config.ts";
import type { Config } from "../config/config.ts";
import type { SigningAlgorithm } from "../keys/jwt.ts";
import type { KeyPair, MakeKeyPair } from "../keys/key-store.ts";
import { makeKeyPair } from "../keys/key-store.ts";
import { s256 } from "../protocol/pkce.ts";
import type { RunningServer } from "../start.ts";
import { openServer } from "../start.ts";
import type { Database } from "../store/database.ts";
import { migrate } from "../store/migrations.ts";
import { openPostgresql } from "../store/postgresql.ts";
import type { Received, SentRequest, Visit } from "./browser.ts";
import { Browser } from "./browser.ts";

export const testPassword = "correct horse battery";
export const testVerifier = "a".repeat(43);
export const testRedirectUri = "https://client.example/cb";
export const testSecret = "s".repeat(43);
/** A sound authorization request of the client `app`, but for its challenge. */
export const testRequest = {
  client_id: "app",
  response_type: "code",
  redirect_uri: testRedirectUri,
  scope: "profile",
  state: "xyz",
};

export interface TestServerOptions {
  /** Flags, as on the command line. */
  readonly flags?: readonly string[];
  readonly database?: (config: Config, nowMs: () => number) => Promise<Database>;
}

export type FormFields = Readonly<Record<string, string>> | string;

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface TestServer extends RunningServer {
  readonly issuer: string;
  readonly dataDir: string;
  readonly clock: { nowMs: number };
  readonly log: readonly LogEntry[];
  send(request: SentRequest): Promise<Received>;
  browser(): Browser;
  client(settings?: Partial<NewClient>): Promise<{ readonly id: string; readonly basic: string }>;
  user(name?: string): Promise<string>;
  authorizeUrl(parameters: Readonly<Record<string, string>>): string;
  post(endpoint: string, form: FormFields, headers?: Readonly<Record<string, string>>): Promise<JsonAnswer>;
  /** The answer that came to the client, after signing in and consenting where that was asked. */
  authorize(browser: Browser, parameters: Readonly<Record<string, string>>): Promise<URLSearchParams>;
  audit(errorId?: string): Promise<readonly StoredAuditEvent[]>;
}

export function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
}

export const testChallenge: Readonly<Record<string, string>> = {
  code_challenge: s256(testVerifier),
  code_challenge_method: "S256",
};

export function testConfig(dataDir: string, flags: readonly string[] = []): Config {
  const argv = ["--data-dir", dataDir, "--password-memory-kib", "8", "--password-iterations", "1", ...flags];
  const loaded = loadConfig({ argv, environment: {} });
  if (loaded.config === undefined) throw new Error(JSON.stringify(loaded));
  return loaded.config;
}

export async function testServer(context: TestContext, options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const config = testConfig(dataDir, options.flags);
  const clock = { nowMs: Date.UTC(2026, 0, 15, 12) };
  const nowMs = (): number => clock.nowMs;
  const log: LogEntry[] = [];
  const logging = new Logging({ level: "debug", sink: (entry) => log.push(entry), nowMs });
  const database = (await options.database?.(config, nowMs)) ?? (await postgresqlForTest(nowMs));
  const running = await openServer({
    config,
    nowMs,
    log: logging.logger("test"),
    makeKeyPair: repeatedKeyPair,
    ...(database === undefined ? {} : { database }),
  });
  context.after(async () => {
    await running.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return extend(running, { config, dataDir, clock, log });
}

const keyPairs = new Map<SigningAlgorithm, Promise<KeyPair>>();

/** One pair for all keys of an algorithm, under ids of their own: an RSA key takes longer to make than most tests. */
export const repeatedKeyPair: MakeKeyPair = (algorithm) => {
  const made = keyPairs.get(algorithm) ?? makeKeyPair(algorithm);
  keyPairs.set(algorithm, made);
  return made;
};

let schemas = 0;

/**
 * The whole suite runs over PostgreSQL too: `store/postgresql-suite.long.test.ts` names a server in the environment,
 * and each test gets a schema of its own there.
 */
async function postgresqlForTest(nowMs: () => number): Promise<Database | undefined> {
  const url = process.env["TULLE_TEST_POSTGRESQL"];
  if (url === undefined) return undefined;
  const schema = `test_${process.pid}_${(schemas += 1)}`;
  const plain = openPostgresql({ url, maxConnections: 1 });
  await plain.transaction((transaction) => plain.script(transaction, `CREATE SCHEMA ${schema}`));
  await plain.close();
  const database = openPostgresql({ url: `${url}?options=-c%20search_path%3D${schema}`, maxConnections: 4, nowMs });
  await migrate(database);
  return database;
}

function extend(
  running: RunningServer,
  base: Pick<TestServer, "dataDir" | "clock" | "log"> & { readonly config: Config },
): TestServer {
  const { config } = base;
  const { issuer } = config;
  const rules = { issuerIsHttp: issuer.startsWith("http:") };
  const { database, passwords, audit } = running.context;

  async function send(request: SentRequest): Promise<Received> {
    // Not through URL, which would encode some characters of the query anew.
    const url = request.url.slice(new URL(issuer).origin.length);
    const response = await running.app.inject({
      method: request.method as "GET",
      url,
      headers: { host: "attacker.example", ...request.headers },
      ...(request.body === undefined ? {} : { payload: Buffer.from(request.body, "latin1") }),
    });
    return { status: response.statusCode, headers: response.headers as Received["headers"], body: response.body };
  }

  const server: TestServer = {
    ...running,
    ...base,
    issuer,
    send,
    browser: () => new Browser(send, issuer),
    client: async (settings = {}) => {
      const id = settings.id ?? "app";
      const wanted = {
        redirectUris: [testRedirectUri],
        ...(settings.isPublic === true ? {} : { secret: testSecret }),
        ...settings,
        id,
      };
      const created = await createClient(database, rules, wanted);
      if (created.problems !== undefined) throw new Error(created.problems.join("; "));
      return { id, basic: basic(id, wanted.secret ?? "") };
    },
    user: async (name = "ann") => {
      const created = await createUser(database, passwords, { name, password: testPassword });
      if (created.value === undefined) throw new Error(created.problems.join("; "));
      return created.value.id;
    },
    authorizeUrl: (parameters) => `${issuer}/authorize?${new URLSearchParams(parameters).toString()}`,
    post: async (endpoint, form, headers = {}) => {
      const body = typeof form === "string" ? form : new URLSearchParams(form).toString();
      const type = { "content-type": "application/x-www-form-urlencoded" };
      const answer = await send({ method: "POST", url: issuer + endpoint, headers: { ...type, ...headers }, body });
      const json = (answer.body === "" ? {} : JSON.parse(answer.body)) as Readonly<Record<string, unknown>>;
      return { status: answer.status, headers: answer.headers, json };
    },
    authorize: async (browser, parameters) => {
      let visit = await browser.open(server.authorizeUrl(parameters));
      if (visit.body.includes('name="username"')) visit = await browser.signIn(visit, "ann", testPassword);
      if (visit.body.includes('name="decision"')) visit = await browser.decide(visit, "allow");
      return answerOf(visit);
    },
    audit: async (errorId) => {
      await audit.flush();
      return database.read((reader) =>
        listAuditEvents(reader, errorId === undefined ? { limit: 1000 } : { errorId, limit: 10 }),
      );
    },
  };
  return server;
}

/** The parameters of a redirect to a client. */
export function answerOf(visit: Visit): URLSearchParams {
  if (visit.location === undefined) throw new Error(`no redirect, status ${visit.status}:\n${visit.body}`);
  return new URL(visit.location).searchParams;
}

export function errorIdOf(description: unknown): string {
  return /\(error id ([0-9a-z]+)\)/.exec(String(description))?.[1] ?? "";
}
