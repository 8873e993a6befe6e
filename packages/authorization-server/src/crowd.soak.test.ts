// One attacker without an account floods a server process in each way there is, with as many requests as a minute of a
// thousand a second has: an owner signs in, a client redeems and another one refreshes all the while, and the store
// stays small.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "../../../tests/tools/processes.ts";
import { createClient } from "./admin/clients.ts";
import { openDatabase } from "./store/open.ts";
import { keptFreePages } from "./store/sqlite.ts";
import type { Browser } from "./testing/browser.ts";
import { formsOf } from "./testing/browser.ts";
import type { FloodRequest } from "./testing/flood.ts";
import { flood } from "./testing/flood.ts";
import { authorizeUrl, consentedBrowser, installation, redemption, sharedIssuer } from "./testing/server-processes.ts";
import type { ServerProcess } from "./testing/server-processes.ts";
import { answerOf, basic, testChallenge, testPassword, testRedirectUri, testVerifier } from "./testing/test-server.ts";

/** At least; an attack goes on until so much honest work was done under it. */
const requestsOfAttack = 60_000;
const honestRounds = 30;
const honestIntervalMs = 100;
const inFlight = 32;
const grownLimitBytes = 10 * 1024 * 1024;
const ownersAddress = "203.0.113.7";
const scope = "profile";

/** What every sign-in form of a browser needs, which the attacker's own has. */
interface OpenPage {
  readonly cookie: string;
  readonly hidden: Readonly<Record<string, string>>;
}

interface Attack {
  readonly name: string;
  /** Default one. */
  readonly address?: (number: number) => string;
  /** At once; default 32. */
  readonly connections?: number;
  /** From more places than may wait for their passwords to be checked: a browser that is not known may find no room. */
  readonly isFromEverywhere?: true;
  readonly request: (number: number, page: OpenPage) => FloodRequest;
}

const query = new URL(authorizeUrl(scope)).search;
const oneHost = (): string => "192.0.2.66";
/** 65,536 hosts of 198.18.0.0/15, the network for load tests (RFC 2544). */
const manyHosts = (number: number): string => `198.18.${(number >> 8) & 255}.${number & 255}`;
/** The networks of one /48, as any customer of a provider has them. */
const manyNetworks = (number: number): string => `2001:db8:7:${(number & 0xffff).toString(16)}::1`;
const hostsOfOneNetwork = (number: number): string => `2001:db8:8:1::${(number & 0xffff).toString(16)}`;
const madeUp = (number: number): string => String(number).padStart(43, "x");
const asAnn = (number: number, page: OpenPage): FloodRequest => password("ann", number, page);
const asAnybody = (number: number, page: OpenPage): FloodRequest => password(`user-${number}`, number, page);

const attacks: readonly Attack[] = [
  { name: "the sign-in page", request: (number) => ({ method: "GET", path: `/authorize${query}&state=${number}` }) },
  { name: "requests of nobody's", request: (number) => ({ method: "GET", path: `/authorize?client_id=c${number}` }) },
  {
    name: "requests that are refused",
    request: (number) => ({ method: "GET", path: `/authorize${query.replace("=code", `=r${number}`)}` }),
  },
  { name: "wrong secrets of a client", request: (number) => refresh({ authorization: basic("app", madeUp(number)) }) },
  {
    name: "secrets of clients that there are not",
    request: (number) => refresh({ authorization: basic(`client-${number}`, madeUp(number)) }),
  },
  {
    name: "secrets of a client that has none",
    request: (number) => refresh({ authorization: basic("native", madeUp(number)) }),
  },
  {
    name: "guesses at codes",
    request: (number) =>
      post("/token", {
        ...redemption(madeUp(number)),
        client_id: "native",
        code_verifier: testVerifier,
      }),
  },
  {
    name: "guesses at refresh tokens",
    request: (number) =>
      post("/token", { grant_type: "refresh_token", refresh_token: madeUp(number), client_id: "native" }),
  },
  {
    name: "guesses at access tokens",
    request: (number) => ({ method: "GET", path: "/userinfo", headers: { authorization: `Bearer ${madeUp(number)}` } }),
  },
  {
    name: "hints that are made up",
    request: (number) => ({ method: "GET", path: `/logout?id_token_hint=${madeUp(number)}` }),
  },
  { name: "passwords of one account from one host", request: asAnn },
  { name: "passwords of one account from many hosts", address: manyHosts, request: asAnn },
  { name: "passwords of one account from many networks of IPv6", address: manyNetworks, request: asAnn },
  { name: "passwords of all accounts from one host", request: asAnybody },
  { name: "passwords of all accounts from one network of IPv6", address: hostsOfOneNetwork, request: asAnybody },
  {
    name: "passwords of all accounts from many networks of IPv6, hundreds at once",
    address: manyNetworks,
    connections: 400,
    request: asAnybody,
  },
  {
    name: "passwords of all accounts from many hosts, hundreds at once",
    address: manyHosts,
    connections: 400,
    isFromEverywhere: true,
    request: asAnybody,
  },
];

function post(
  target: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): FloodRequest {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const body = new URLSearchParams(fields).toString();
  return { method: "POST", path: target, headers: { ...form, ...headers }, body };
}

function refresh(headers: Readonly<Record<string, string>>): FloodRequest {
  return post("/token", { grant_type: "refresh_token", refresh_token: "x" }, headers);
}

function password(username: string, number: number, { cookie, hidden }: OpenPage): FloodRequest {
  return post("/sign-in", { ...hidden, username, password: `wrong ${number}` }, { cookie });
}

/**
 * Ann with a browser that is known, Bob with a new one each time, the client of a secret that redeems their codes, and
 * a public one that refreshes.
 */
class HonestPeople {
  readonly outcomes: string[] = [];
  readonly #server: ServerProcess;
  readonly #browser: Browser;
  #refreshToken = "";

  private constructor(server: ServerProcess, browser: Browser) {
    this.#server = server;
    this.#browser = browser;
  }

  static async of(server: ServerProcess): Promise<HonestPeople> {
    const browser = await consentedBrowser(server, scope);
    await consentedBrowser(server, scope, "bob");
    browser.headers["x-forwarded-for"] = ownersAddress;
    const people = new HonestPeople(server, browser);
    const native = { client_id: "native", scope: `${scope} offline_access`, ...testChallenge };
    const url = new URL(authorizeUrl(scope));
    for (const [name, value] of Object.entries(native)) url.searchParams.set(name, value);
    const answer = answerOf(await browser.decide(await browser.open(url.href), "allow"));
    await people.#tokens({ ...redemption(answer.get("code") ?? ""), code_verifier: testVerifier });
    return people;
  }

  /** Again and again until it is stopped; tells what came of each. */
  async work(isOver: () => boolean, withStrangers: boolean): Promise<void> {
    while (!isOver()) {
      await this.#signIn("ann", this.#browser);
      if (withStrangers) {
        const browser = this.#server.browser();
        browser.headers["x-forwarded-for"] = ownersAddress;
        await this.#signIn("bob", browser);
      }
      const status = await this.#tokens({ grant_type: "refresh_token", refresh_token: this.#refreshToken });
      this.outcomes.push(status === 200 ? "success" : `refresh ${status}`);
      await delay(honestIntervalMs);
    }
  }

  async #signIn(name: string, browser: Browser): Promise<void> {
    const page = await browser.open(`${authorizeUrl(scope)}&prompt=login`);
    const signedIn = await browser.signIn(page, name, testPassword);
    if (signedIn.location === undefined) {
      this.outcomes.push(`sign-in of ${name} ${signedIn.status}`);
      return;
    }
    const { status } = await this.#server.post("/token", redemption(answerOf(signedIn).get("code") ?? ""));
    this.outcomes.push(status === 200 ? "success" : `redemption ${status}`);
  }

  /** For the public client. */
  async #tokens(fields: Readonly<Record<string, string>>): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#server.port}/token`, {
      method: "POST",
      headers: { "x-forwarded-for": ownersAddress },
      body: new URLSearchParams({ ...fields, client_id: "native" }),
    });
    const json = (await response.json()) as { readonly refresh_token?: string };
    this.#refreshToken = json.refresh_token ?? this.#refreshToken;
    return response.status;
  }
}

/** Nothing is remembered of an attack, and what it took of the disk has gone back. */
function isCompact(dataDir: string): boolean {
  const file = path.join(dataDir, "store.sqlite");
  using database = new DatabaseSync(file, { readOnly: true });
  const count = (sql: string): unknown => Object.values(database.prepare(sql).get()!)[0];
  return (
    count("SELECT count(*) FROM throttles") === 0 &&
    Number(count("PRAGMA freelist_count")) <= keptFreePages &&
    fs.statSync(`${file}-wal`).size === 0
  );
}

test("no flood of one attacker keeps others out or fills the store", async (t) => {
  await using shared = await installation(undefined, ["--trusted-proxies", "127.0.0.1"]);
  const database = await openDatabase(shared.config);
  const native = { id: "native", isPublic: true, redirectUris: [testRedirectUri] };
  await createClient(database, { issuerIsHttp: true }, native);
  const server = await shared.startProcess();
  const people = await HonestPeople.of(server);
  const bytes = (): number =>
    fs
      .readdirSync(shared.config.dataDir)
      .reduce((sum, name) => sum + fs.statSync(path.join(shared.config.dataDir, name)).size, 0);
  const visitor = server.browser();
  const { hidden } = formsOf((await visitor.open(`${sharedIssuer}/sign-in`)).body)[0]!;
  const cookie = [...visitor.cookies].map((pair) => pair.join("=")).join("; ");
  const quiet = bytes();
  for (const { name, address = oneHost, connections = inFlight, isFromEverywhere = false, request } of attacks) {
    await t.test(name, async (each) => {
      const before = bytes();
      let over = false;
      people.outcomes.length = 0;
      const work = people.work(() => over, !isFromEverywhere);
      const statuses = await flood({
        port: server.port,
        connections,
        request: (number) => {
          const made = request(number, { cookie, hidden });
          return { ...made, headers: { ...made.headers, "x-forwarded-for": address(number) } };
        },
        isOver: (sent) => sent >= requestsOfAttack && people.outcomes.length >= 2 * honestRounds,
      }).finally(() => (over = true));
      await work;
      const { outcomes } = people;
      const failed = outcomes.filter((outcome) => outcome !== "success");
      const grown = bytes() - before;
      each.diagnostic(
        `${outcomes.length} honest works, ${failed.length} failed; attacks ${JSON.stringify(Object.fromEntries(statuses))}; ${Math.round(grown / 1024)} KiB more`,
      );
      assert.ok(
        failed.length <= outcomes.length / 100,
        `${failed.length} of ${outcomes.length}: ${[...new Set(failed)].join()}`,
      );
      assert.ok(grown < grownLimitBytes, `${grown} bytes more`);
    });
  }
  // As if the quarter of an hour had passed in which failures are remembered.
  await database.transaction((transaction) => transaction.run("UPDATE throttles SET expires_at = 0"));
  await database.close();
  await waitFor(() => isCompact(shared.config.dataDir), { what: "the store to shrink", timeoutMs: 120_000 });
  // What is left is what honest people did.
  assert.ok(bytes() - quiet < grownLimitBytes / 2, `${bytes() - quiet} bytes more`);
});
