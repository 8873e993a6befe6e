// Requests: who asks, what is asked for, and what a refusal becomes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scriptedApiServer } from "../testing/scripted-api-server.ts";
import type { CredentialSource, Credentials } from "./cluster-access.ts";
import { fixedCredentials } from "./cluster-access.ts";

test("credentials, whom one acts for, the program's name and the query are sent", async (t) => {
  const server = await scriptedApiServer(t, [{ lines: [{ a: 1 }] }]);
  const impersonation = { user: "jane", groups: ["g1", "g2"], extra: { "Scopes.example/x": ["y"] } };
  const client = server.client({
    credentials: fixedCredentials({ token: "t" }),
    impersonation,
    server: `${server.url}/cluster/one`,
  });
  const query = { limit: 5, watch: undefined, fieldSelector: "metadata.name=a b" };
  assert.deepEqual(await client.request({ path: "/api/v1/pods", query }), { a: 1 });
  const [{ path, query: asked, headers }] = server.asked as [(typeof server.asked)[0]];
  assert.equal(path, "/cluster/one/api/v1/pods");
  assert.deepEqual(
    [...asked],
    [
      ["limit", "5"],
      ["fieldSelector", "metadata.name=a b"],
    ],
  );
  const names = ["authorization", "user-agent", "impersonate-user", "impersonate-group"] as const;
  assert.deepEqual(
    names.map((name) => headers[name]),
    ["Bearer t", "tulle-test", "jane", "g1, g2"],
  );
  assert.equal(headers["impersonate-extra-scopes.example%2Fx".toLowerCase()], "y");
});

/** Gives one after the other as they are refused. */
function takingTurns(all: readonly Credentials[]): CredentialSource {
  let at = 0;
  return {
    current: async () => all[Math.min(at, all.length - 1)]!,
    refused: () => {
      at += 1;
    },
  };
}

test("credentials that are refused are made anew, once", async (t) => {
  const unauthorized = { status: 401, lines: [{ kind: "Status", reason: "Unauthorized", message: "Unauthorized" }] };
  const server = await scriptedApiServer(t, [unauthorized, { lines: [{ ok: true }] }]);
  const client = server.client({ credentials: takingTurns([{ token: "old" }, { token: "new" }]) });
  assert.deepEqual(await client.request({ path: "/api" }), { ok: true });
  assert.deepEqual(
    server.asked.map(({ headers }) => headers.authorization),
    ["Bearer old", "Bearer new"],
  );
  const refused = await scriptedApiServer(t, [unauthorized]);
  const others = refused.client({ credentials: fixedCredentials({ token: "old" }) });
  await assert.rejects(others.request({ path: "/api" }), { code: 401, reason: "Unauthorized" });
  assert.equal(refused.asked.length, 1);
});

test("a refusal keeps the server's words, its reason, and how long to wait", async (t) => {
  const status = { kind: "Status", code: 409, reason: "Conflict", message: "the object has been modified" };
  const server = await scriptedApiServer(t, [
    { status: 409, lines: [status] },
    { status: 429, headers: { "retry-after": "7" }, lines: ["slow down"] },
    { lines: ["<html>"], headers: { "content-type": "text/html" } },
  ]);
  const client = server.client();
  await assert.rejects(client.request({ path: "/a" }), { code: 409, reason: "Conflict", message: status.message });
  await assert.rejects(client.request({ path: "/b" }), {
    code: 429,
    retryAfterMs: 7000,
    message: "HTTP 429: slow down",
  });
  await assert.rejects(client.request({ path: "/c" }), {
    code: 0,
    message: /answered \/c with text\/html, which is no JSON$/,
  });
});

test("a server that is not there is named, with the reason", async (t) => {
  const server = await scriptedApiServer(t, [{}]);
  const client = server.client({ server: "http://127.0.0.1:1" });
  await assert.rejects(client.request({ path: "/a" }), {
    code: 0,
    message: /^http:\/\/127\.0\.0\.1:1 cannot be reached: connect ECONNREFUSED/,
  });
});
