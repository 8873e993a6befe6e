// Fifty times SIGKILL under load: whatever was acknowledged is still there after the restart, no code redeems twice,
// and the database is sound. And once in the middle of telling a client that a session has ended.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { decodeJwt } from "jose";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { updateClient } from "../admin/clients.ts";
import { endUserSessions } from "../admin/grants.ts";
import { openDatabase } from "./open.ts";
import { consentedBrowser, installation, nextCode, redemption } from "../testing/server-processes.ts";
import type { Browser } from "../testing/browser.ts";
import type { ServerProcess } from "../testing/server-processes.ts";

const kills = 50;
const lanes = 6;
const flowsBeforeKill = 40;
const scope = "profile offline_access";

interface Ledger {
  /** How often each code was answered with tokens. */
  readonly redeemed: Map<string, number>;
  /** Codes that the client has and has not yet presented. */
  readonly unused: Set<string>;
  /** Refresh tokens that the client has and has not yet presented. */
  readonly refreshable: Set<string>;
  /** Flows answered since the last start. */
  flows: number;
}

async function redeem(server: ServerProcess, ledger: Ledger, code: string): Promise<number> {
  ledger.unused.delete(code);
  const answer = await server.post("/token", redemption(code));
  if (answer.status === 200) {
    ledger.redeemed.set(code, (ledger.redeemed.get(code) ?? 0) + 1);
    ledger.refreshable.add(String(answer.json["refresh_token"]));
  }
  return answer.status;
}

/** Runs flows until the server dies under them. */
async function lane(server: ServerProcess, browser: Browser, ledger: Ledger): Promise<void> {
  for (;;) {
    try {
      const code = await nextCode(browser, scope);
      ledger.unused.add(code);
      // Every third code waits for the next life of the server.
      if (ledger.flows % 3 !== 0) await redeem(server, ledger, code);
      ledger.flows += 1;
    } catch (error) {
      if (server.process.exit !== undefined || isConnectionLoss(error)) return;
      throw error;
    }
  }
}

function isConnectionLoss(error: unknown): boolean {
  const { message, cause } = error as Error;
  const code = (cause as { code?: string } | undefined)?.code ?? "";
  return message === "fetch failed" || message === "terminated" || /^(ECONN|UND_ERR|EPIPE)/.test(code);
}

test("fifty SIGKILLs under load lose nothing that was acknowledged and repeat nothing", async () => {
  await using shared = await installation(undefined);
  const ledger: Ledger = { redeemed: new Map(), unused: new Set(), refreshable: new Set(), flows: 0 };
  let server = await shared.startProcess();
  const before = await consentedBrowser(server, scope);
  for (let kill = 0; kill < kills; kill += 1) {
    ledger.flows = 0;
    const running = server;
    const browsers = Array.from({ length: lanes }, () => {
      const browser = running.browser();
      for (const [name, value] of before.cookies) browser.cookies.set(name, value);
      return browser;
    });
    const work = browsers.map((browser) => lane(running, browser, ledger));
    // Killed in the middle of work, at a different point each time.
    while (ledger.flows < flowsBeforeKill + (kill % 7)) await Promise.race([...work, new Promise(setImmediate)]);
    running.process.kill("SIGKILL");
    await running.process.exited;
    await Promise.all(work);
    checkDatabase(path.join(shared.config.dataDir, "store.sqlite"));
    server = await shared.startProcess();
    await checkLedger(server, ledger, kill);
  }
  assert.ok(ledger.redeemed.size > kills, `${ledger.redeemed.size} codes were redeemed`);
  assert.deepEqual(
    [...ledger.redeemed].filter(([, times]) => times > 1),
    [],
  );
});

function checkDatabase(file: string): void {
  const database = new DatabaseSync(file);
  assert.deepEqual({ ...database.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  assert.deepEqual(database.prepare("PRAGMA foreign_key_check").all(), []);
  database.close();
}

/** The session and the grant live, unused codes and refresh tokens work, and redeemed codes do not. */
async function checkLedger(server: ServerProcess, ledger: Ledger, kill: number): Promise<void> {
  for (const code of ledger.unused) assert.equal(await redeem(server, ledger, code), 200, `code after kill ${kill}`);
  const sample = [...ledger.redeemed.keys()].slice(-3);
  for (const token of [...ledger.refreshable].slice(-5)) {
    const answer = await server.post("/token", { grant_type: "refresh_token", refresh_token: token });
    assert.equal(answer.status, 200, `refresh token after kill ${kill}: ${JSON.stringify(answer.json)}`);
  }
  ledger.refreshable.clear();
  for (const code of sample) assert.equal(await redeem(server, ledger, code), 400, `replay after kill ${kill}`);
}

test("a logout that is being told when its server dies is told again by the next one", async (t) => {
  await using shared = await installation(undefined);
  const tokens: string[] = [];
  // The first one gets no answer.
  const receiver = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      tokens.push(new URLSearchParams(Buffer.concat(chunks).toString()).get("logout_token") ?? "none");
      if (tokens.length > 1) response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const database = await openDatabase(shared.config);
  t.after(() => database.close());
  const backchannelLogoutUri = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/logout`;
  await updateClient(database, { issuerIsHttp: true }, "app", { backchannelLogoutUri });
  const first = await shared.startProcess();
  await nextCode(await consentedBrowser(first, "openid"), "openid");
  await endUserSessions(database, "ann");
  await waitFor(() => tokens.length === 1, { what: "the first try" });
  await first.process.stop({ signal: "SIGKILL" });
  await using next = (await shared.startProcess()).process;
  await waitFor(() => tokens.length === 2, { what: "the second try", details: () => next.output() });
  const [before, after] = tokens.map((token) => decodeJwt(token));
  assert.equal(before!["sid"], after!["sid"]);
  assert.notEqual(before!.jti, after!.jti, "each try has an id of its own");
  const waiting = () => database.read((reader) => reader.all("SELECT * FROM logout_notices"));
  await waitFor(async () => (await waiting()).length === 0, { what: "the notice to be done with" });
});
