// Several authorization server processes over one store, as an installation runs them.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { StartedProcess } from "../../../../tests/tools/processes.ts";
import { freePorts, startProcess } from "../../../../tests/tools/processes.ts";
import { createClient } from "../admin/clients.ts";
import { createUser } from "../admin/users.ts";
import { loadConfig } from "../config/config.ts";
import type { Config } from "../config/config.ts";
import { passwordHasher } from "../crypto/passwords.ts";
import { openDatabase } from "../store/open.ts";
import { Browser } from "./browser.ts";
import { answerOf, basic, testPassword, testRedirectUri, testSecret } from "./test-server.ts";

export const sharedIssuer = "http://localhost:9400";

export interface ServerProcess {
  readonly process: StartedProcess;
  readonly port: number;
  browser(): Browser;
  post(
    endpoint: string,
    form: Readonly<Record<string, string>>,
  ): Promise<{ status: number; json: Record<string, unknown> }>;
}

export interface Installation extends AsyncDisposable {
  readonly config: Config;
  startProcess(): Promise<ServerProcess>;
}

/** `databaseUrl` undefined is SQLite. The client `app` and the users `ann`, `bob` and `cid` are there. */
export async function installation(
  databaseUrl: string | undefined,
  flags: readonly string[] = [],
): Promise<Installation> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const keyFile = path.join(dataDir, "sealing-key");
  writeFileSync(keyFile, randomBytes(32).toString("base64"), { mode: 0o600 });
  const argv = ["--data-dir", dataDir, "--issuer", sharedIssuer, "--key-encryption-key-file", keyFile];
  argv.push("--password-memory-kib", "8", "--password-iterations", "1", "--log-level", "error", ...flags);
  if (databaseUrl !== undefined) argv.push("--database", databaseUrl);
  const { config } = loadConfig({ argv, environment: {} });
  if (config === undefined) throw new Error("the test's configuration is wrong");
  const database = await openDatabase(config);
  const client = { id: "app", redirectUris: [testRedirectUri], secret: testSecret };
  const created = await createClient(database, { issuerIsHttp: true }, client);
  if (created.problems !== undefined) throw new Error(created.problems.join());
  const hasher = passwordHasher({ memoryKib: 8, iterations: 1, parallelism: 1 });
  for (const name of ["ann", "bob", "cid"]) await createUser(database, hasher, { name, password: testPassword });
  await database.close();
  const processes: StartedProcess[] = [];
  return {
    config,
    startProcess: async () => {
      const [port] = await freePorts(1);
      const main = path.resolve(import.meta.dirname, "../main.ts");
      const started = await startProcess(process.execPath, [main, ...argv, "--port", String(port)]);
      processes.push(started);
      await started.waitForOutput(/Ready/);
      return connected(started, port!);
    },
    [Symbol.asyncDispose]: async () => {
      for (const started of processes) await started.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function connected(started: StartedProcess, port: number): ServerProcess {
  const address = `http://127.0.0.1:${port}`;
  return {
    process: started,
    port,
    browser: () =>
      new Browser(async ({ method, url, headers, body }) => {
        const content = body === undefined ? {} : { body };
        const target = url.replace(sharedIssuer, address);
        const response = await fetch(target, { method, headers, redirect: "manual", ...content });
        const received = Object.fromEntries(response.headers) as Record<string, string | readonly string[]>;
        received["set-cookie"] = response.headers.getSetCookie();
        return { status: response.status, headers: received, body: await response.text() };
      }, sharedIssuer),
    post: async (endpoint, form) => {
      const headers = {
        authorization: basic("app", testSecret),
        "content-type": "application/x-www-form-urlencoded",
      };
      const body = new URLSearchParams(form).toString();
      const response = await fetch(address + endpoint, { method: "POST", headers, body });
      return { status: response.status, json: (await response.json()) as Record<string, unknown> };
    },
  };
}

export function authorizeUrl(scope: string): string {
  const parameters = { client_id: "app", response_type: "code", redirect_uri: testRedirectUri, scope };
  return `${sharedIssuer}/authorize?${new URLSearchParams(parameters).toString()}`;
}

/** A browser that is signed in and has consented to the scope. */
export async function consentedBrowser(server: ServerProcess, scope: string, name = "ann"): Promise<Browser> {
  const browser = server.browser();
  const consent = await browser.signIn(await browser.open(authorizeUrl(scope)), name, testPassword);
  answerOf(await browser.decide(consent, "allow"));
  return browser;
}

export async function nextCode(browser: Browser, scope: string): Promise<string> {
  return answerOf(await browser.open(authorizeUrl(scope))).get("code") ?? "";
}

export function redemption(code: string): Readonly<Record<string, string>> {
  return { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
}
