// The authorization server on a real port, and a client application's redirect endpoint beside it, for tests that come
// from outside: browsers and client libraries.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Logging } from "@tulle/telemetry";
import { createClient, updateClient } from "../admin/clients.ts";
import type { ClientSettings, NewClient } from "../admin/clients.ts";
import { endUserSessions } from "../admin/grants.ts";
import { createUser } from "../admin/users.ts";
import { openServer } from "../start.ts";
import type { RunningServer } from "../start.ts";
import { freePorts } from "../../../../tests/tools/processes.ts";
import type { Send } from "./browser.ts";
import { Browser } from "./browser.ts";
import { testConfig, testPassword, testSecret } from "./test-server.ts";

export interface ListeningServer extends AsyncDisposable {
  readonly issuer: string;
  /** Where the client application takes its answers; what comes there is kept in `answers`. */
  readonly redirectUri: string;
  readonly answers: URLSearchParams[];
  readonly running: RunningServer;
  client(settings?: Partial<NewClient>): Promise<void>;
  updateClient(id: string, settings: ClientSettings): Promise<void>;
  user(name?: string): Promise<void>;
  endSessions(userName: string): Promise<void>;
  browser(): Browser;
}

export async function listeningServer(
  flags: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<ListeningServer> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const [port] = await freePorts(1);
  const config = testConfig(dataDir, ["--port", String(port), ...flags]);
  const running = await openServer({ config, log: new Logging({ sink: () => undefined }).logger("test"), environment });
  await running.listen();
  const answers: URLSearchParams[] = [];
  const application = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://client");
    if (url.pathname === "/cb") answers.push(url.searchParams);
    response.setHeader("content-type", "text/html");
    response.end(`<title>Application</title><h1>Back in the application</h1><pre>${url.pathname}</pre>`);
  }).listen(0, "127.0.0.1");
  await once(application, "listening");
  const redirectUri = `http://127.0.0.1:${(application.address() as AddressInfo).port}/cb`;
  const { database, passwords } = running.context;
  return {
    issuer: config.issuer,
    redirectUri,
    answers,
    running,
    browser: () => new Browser(overHttp, config.issuer),
    client: async (settings = {}) => {
      const secret = settings.isPublic === true ? {} : { secret: testSecret };
      const wanted = { id: "app", redirectUris: [redirectUri], ...secret, ...settings };
      const created = await createClient(database, { issuerIsHttp: true }, wanted);
      if (created.problems !== undefined) throw new Error(created.problems.join("; "));
    },
    updateClient: async (id, settings) => {
      const { problems } = await updateClient(database, { issuerIsHttp: true }, id, settings);
      if (problems !== undefined) throw new Error(problems.join("; "));
    },
    endSessions: async (userName) => void (await endUserSessions(database, userName)),
    user: async (name = "ann") => {
      const wanted = { name, password: testPassword, displayName: "Ann Example", email: "ann@example.com" };
      const created = await createUser(database, passwords, wanted);
      if (created.problems !== undefined) throw new Error(created.problems.join("; "));
    },
    [Symbol.asyncDispose]: async () => {
      application.closeAllConnections();
      application.close();
      running.app.server.closeAllConnections();
      await running.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export const overHttp: Send = async ({ method, url, headers, body }) => {
  const content = body === undefined ? {} : { body };
  const response = await fetch(url, { method, headers, redirect: "manual", ...content });
  const received: Record<string, string | readonly string[]> = Object.fromEntries(response.headers);
  const cookies = response.headers.getSetCookie();
  return { status: response.status, headers: { ...received, "set-cookie": cookies }, body: await response.text() };
};
