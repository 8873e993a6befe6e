// Fifty times SIGKILL under load: whatever was acknowledged is still there after the restart, no code redeems twice, and
// the database is sound.
import assert from "node:assert/strict";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
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
