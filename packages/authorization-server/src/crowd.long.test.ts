// One attacker without an account floods a server process in each way there is, thirty-two requests at once:
// an owner signs in and a client redeems all the while, and the store stays small.
import assert from "node:assert/strict";
import fs from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "../../../tests/tools/processes.ts";
import type { Browser } from "./testing/browser.ts";
import { formsOf } from "./testing/browser.ts";
import { authorizeUrl, consentedBrowser, installation, redemption, sharedIssuer } from "./testing/server-processes.ts";
import type { ServerProcess } from "./testing/server-processes.ts";
import { answerOf, basic, testPassword } from "./testing/test-server.ts";

/** At least; an attack goes on until so much honest work was done under it. */
const requestsOfAttack = 20_000;
const honestSignIns = 30;
const inFlight = 32;
const honestIntervalMs = 100;
const grownLimitBytes = 10 * 1024 * 1024;
const attackerAddress = "192.0.2.66";
const ownersAddress = "203.0.113.7";
const scope = "profile";

interface Attack {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

type MakeAttack = (
  number: number,
  page: { readonly cookie: string; readonly hidden: Readonly<Record<string, string>> },
) => Attack;

const query = new URL(authorizeUrl(scope)).search;
const form = { "content-type": "application/x-www-form-urlencoded" };

const attacks: Readonly<Record<string, MakeAttack>> = {
  "the sign-in page": (number) => ({ method: "GET", path: `/authorize${query}&state=${number}` }),
  "requests that are refused": (number) => ({ method: "GET", path: `/authorize?client_id=c${number}` }),
  "wrong secrets of a client": () => ({
    method: "POST",
    path: "/token",
    headers: { ...form, authorization: basic("app", "x".repeat(43)) },
    body: "grant_type=refresh_token&refresh_token=x",
  }),
  "secrets of clients that there are not": (number) => ({
    method: "POST",
    path: "/token",
    headers: { ...form, authorization: basic(`client-${number}`, "x".repeat(43)) },
    body: "grant_type=refresh_token&refresh_token=x",
  }),
  "wrong passwords of one account": (number, page) => guess("ann", number, page),
  "wrong passwords of all accounts": (number, page) => guess(`user-${number}`, number, page),
};

function guess(username: string, number: number, page: Parameters<MakeAttack>[1]): Attack {
  const fields = new URLSearchParams({ ...page.hidden, username, password: `wrong ${number}` });
  return { method: "POST", path: "/sign-in", headers: { ...form, cookie: page.cookie }, body: fields.toString() };
}

/** Answers are read and counted by status; no more is looked at. */
async function flood(
  server: ServerProcess,
  make: (number: number) => Attack,
  isEnough: () => boolean,
): Promise<ReadonlyMap<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  const statuses = new Map<number, number>();
  const send = ({ method, path: target, headers, body }: Attack): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const all = { host: "localhost", "x-forwarded-for": attackerAddress, ...headers };
    const sent = httpRequest(
      { host: "127.0.0.1", port: server.port, agent, method, path: target, headers: all },
      (answer) => {
        statuses.set(answer.statusCode!, (statuses.get(answer.statusCode!) ?? 0) + 1);
        answer.resume().once("end", resolve).once("error", reject);
      },
    );
    sent.once("error", reject).end(body);
    return promise;
  };
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < requestsOfAttack || !isEnough()) await send(make((next += 1)));
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  agent.destroy();
  return statuses;
}

/** Signs in with a password, and has the client redeem the code, again and again until it is stopped; tells what came of each. */
async function honestWork(
  server: ServerProcess,
  browser: Browser,
  outcomes: string[],
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const page = await browser.open(`${authorizeUrl(scope)}&prompt=login`);
    const signedIn = await browser.signIn(page, "ann", testPassword);
    if (signedIn.location === undefined) outcomes.push(`sign-in ${signedIn.status}`);
    else {
      const tokens = await server.post("/token", redemption(answerOf(signedIn).get("code") ?? ""));
      outcomes.push(tokens.status === 200 ? "success" : `token ${tokens.status}`);
    }
    await delay(honestIntervalMs);
  }
}

test("no flood of one attacker keeps others out or fills the store", async (t) => {
  await using shared = await installation(undefined, ["--trusted-proxies", "127.0.0.1"]);
  const server = await shared.startProcess();
  const owner = await consentedBrowser(server, scope);
  owner.headers["x-forwarded-for"] = ownersAddress;
  const bytes = (): number =>
    fs
      .readdirSync(shared.config.dataDir)
      .reduce((sum, name) => sum + fs.statSync(path.join(shared.config.dataDir, name)).size, 0);
  const visitor = server.browser();
  const page = await visitor.open(`${sharedIssuer}/sign-in`);
  const cookie = [...visitor.cookies].map((pair) => pair.join("=")).join("; ");
  const { hidden } = formsOf(page.body)[0]!;
  const before = bytes();
  for (const [name, make] of Object.entries(attacks)) {
    await t.test(name, async (each) => {
      let over = false;
      const outcomes: string[] = [];
      const work = honestWork(server, owner, outcomes, () => over);
      const statuses = await flood(
        server,
        (number) => make(number, { cookie, hidden }),
        () => outcomes.length >= honestSignIns,
      ).finally(() => (over = true));
      await work;
      const failed = outcomes.filter((outcome) => outcome !== "success");
      const grown = bytes() - before;
      each.diagnostic(
        `${outcomes.length} honest sign-ins, ${failed.length} failed; attacks ${JSON.stringify(Object.fromEntries(statuses))}; ${Math.round(grown / 1024)} KiB more`,
      );
      assert.ok(
        failed.length <= outcomes.length / 100,
        `${failed.length} of ${outcomes.length}: ${[...new Set(failed)].join()}`,
      );
      assert.ok(grown < grownLimitBytes, `${grown} bytes more`);
    });
  }
  await waitFor(() => bytes() - before < grownLimitBytes / 5, { what: "the store to shrink", timeoutMs: 120_000 });
});
