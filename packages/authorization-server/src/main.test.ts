// The program as it is started: what it prints, the demo's secrets, several mistakes, and a graceful end.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { freePorts, startProcess, waitFor } from "../../../tests/tools/processes.ts";
import type { StartedProcess } from "../../../tests/tools/processes.ts";
import { makeDemo } from "./admin/demo.ts";
import { Browser } from "./testing/browser.ts";
import { overHttp } from "./testing/listening-server.ts";
import { testServer } from "./testing/test-server.ts";

const main = path.join(import.meta.dirname, "main.ts");

function folder(t: TestContext): string {
  const made = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function start(...args: readonly string[]): Promise<StartedProcess> {
  const cheap = ["--password-memory-kib", "8", "--password-iterations", "1"];
  return startProcess(process.execPath, [main, ...args, ...cheap], { name: "authorization-server" });
}

test("prints Ready and its addresses, keeps the demo's secrets out of a log, ends on SIGTERM", async (t) => {
  const dataDir = folder(t);
  const [port] = await freePorts(1);
  const args = ["--demo", "--data-dir", dataDir, "--port", String(port)];
  await using first = await start(...args);
  await first.waitForOutput(/demo +user demo/);
  assert.match(first.stdout(), /^Ready\n/);
  assert.match(first.stdout(), new RegExp(`issuer +http://localhost:${port}\n`));
  const file = path.join(dataDir, "demo.json");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const demo = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  for (const secret of [demo["password"]!, demo["clientSecret"]!]) assert.ok(!first.output().includes(secret));
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  assert.equal(ready.status, 200);
  const empty = folder(t);
  await using rival = await start("--demo", "--data-dir", empty, "--port", String(port));
  assert.deepEqual(await rival.exited, { code: 1, signal: null });
  await rival.waitForOutput(
    new RegExp(`port ${port} on 127.0.0.1 is in use; choose another with --port: --port \\d+ is free`),
  );
  assert.deepEqual(readdirSync(empty), [], "nothing was made");
  assert.deepEqual(await first.stop(), { code: 0, signal: null });
  await using second = await start(...args);
  await second.waitForOutput(/Ready/);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), demo, "a second start keeps them");
  assert.deepEqual(await second.stop(), { code: 0, signal: null });
  const redirectUri = `http://localhost:${port}/elsewhere`;
  await using third = await start(...args, "--demo-redirect-uri", redirectUri);
  await third.waitForOutput(/Ready/);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), { ...demo, redirectUri }, "secrets stay, addresses move");
  const asked = new URLSearchParams({ client_id: "demo-client", response_type: "code", redirect_uri: redirectUri });
  const answer = await fetch(`http://127.0.0.1:${port}/authorize?${asked.toString()}`, { redirect: "manual" });
  assert.equal(answer.status, 303);
  assert.deepEqual(await third.stop(), { code: 0, signal: null });
  const given = { password: "of-somebody's-own-choice", clientSecret: "known-to-the-client-as-well-0123456789" };
  const [password, secret] = [`--demo-password=${given.password}`, `--demo-client-secret=${given.clientSecret}`];
  await using fourth = await start(...args, password, secret);
  await fourth.waitForOutput(/Ready/);
  const basic = Buffer.from(`demo-client:${given.clientSecret}`).toString("base64");
  const redeemed = await fetch(`http://127.0.0.1:${port}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}`, "content-type": "application/x-www-form-urlencoded" },
    body: "grant_type=authorization_code&code=none&redirect_uri=http://localhost",
  });
  assert.match(await redeemed.text(), /invalid_grant/, "the secret that is given holds, and not the one of before");
  assert.deepEqual(
    JSON.parse(readFileSync(file, "utf8")),
    { ...demo, ...given, redirectUri: `http://localhost:${port}/demo/callback` },
    "what is given holds",
  );
});

test("connections that ask nothing keep nobody out, however few files may be open", async (t) => {
  const [port] = await freePorts(1);
  const args = ["--data-dir", folder(t), "--port", String(port)];
  const limited = ["--nofile=192", process.execPath, main, ...args];
  await using server = await startProcess("prlimit", limited, { name: "authorization-server" });
  await server.waitForOutput(/Ready/);
  const open = new Set<Socket>();
  t.after(() => open.forEach((socket) => socket.destroy()));
  for (let begun = 0; begun < 400; begun += 1) {
    const socket = connect({ host: "127.0.0.1", port: port! });
    open.add(socket);
    socket.on("error", () => undefined).on("close", () => open.delete(socket));
    await once(socket.resume(), "connect");
  }
  await waitFor(() => open.size <= 96, { what: "the oldest to make way" });
  assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200);
});

test("a wrong configuration ends with status 2 and says each mistake", async (t) => {
  await using wrong = await start("--data-dir", folder(t), "--issuer", "http://auth.example", "--port", "99999");
  assert.deepEqual(await wrong.exited, { code: 2, signal: null });
  await wrong.waitForOutput(/configuration: issuer: .*must be https/);
  assert.match(wrong.stderr(), /configuration: port: 99999 is no port/);
});

test("the demo works to its end on a port that was found, from its first page to the tokens", async (t) => {
  const dataDir = folder(t);
  await using server = await start("--demo", "--data-dir", dataDir, "--port", "0");
  await server.waitForOutput(/demo +user demo/);
  const issuer = /issuer +(\S+)/.exec(server.stdout())![1]!;
  assert.match(server.stdout(), new RegExp(`try it +${issuer}/demo\n`));
  const { password } = JSON.parse(readFileSync(path.join(dataDir, "demo.json"), "utf8")) as { password: string };
  const browser = new Browser(overHttp, issuer);
  const login = await browser.open(`${issuer}/demo`);
  const end = await browser.decide(await browser.signIn(login, "demo", password), "allow");
  assert.equal(end.status, 200, end.body);
  assert.match(end.body, /Signed in.*&quot;sub&quot;: &quot;usr_.*refresh_token/s);
  const again = await browser.open(end.url);
  assert.equal(again.status, 200);
  assert.match(again.body, /Shown already/);
  assert.doesNotMatch(again.body, /access_token/);
  const elsewhere = await new Browser(overHttp, issuer).open(end.url);
  assert.equal(elsewhere.status, 400, "an answer of no sign-in that was begun");
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test("the demo's cookie is for secure connections where the issuer is https", async (t) => {
  for (const [issuer, end] of [
    ["https://localhost:9443/sso", "; Path=/sso/demo; Max-Age=600; HttpOnly; SameSite=Lax; Secure"],
    ["http://localhost:9400", "; Path=/demo; Max-Age=600; HttpOnly; SameSite=Lax"],
  ] as const) {
    const server = await testServer(t, { flags: ["--issuer", issuer, "--demo"] });
    await makeDemo(server.context);
    const answer = await server.send({ method: "GET", url: `${issuer}/demo`, headers: {}, body: undefined });
    assert.ok(String(answer.headers["set-cookie"]).endsWith(end), String(answer.headers["set-cookie"]));
  }
});

test("a program at [::1] that would get what browsers send to localhost is told before anything is made", async (t) => {
  const [port] = await freePorts(1);
  const other = createServer().listen(port, "::1");
  t.after(() => other.close());
  await once(other, "listening");
  const empty = folder(t);
  await using server = await start("--demo", "--data-dir", empty, "--port", String(port));
  assert.deepEqual(await server.exited, { code: 1, signal: null });
  await server.waitForOutput(new RegExp(`port ${port} on ::1 is in use`));
  assert.deepEqual(readdirSync(empty), []);
});
