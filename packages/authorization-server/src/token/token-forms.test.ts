// What clients and resource servers have as defaults: algorithm and type of tokens by client and by audience, claims
// about the user where they are wanted, `scope` in every token answer, and userinfo for tokens that are meant for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import type { JSONWebKeySet } from "jose";
import { updateUserSettings } from "../admin/users.ts";
import {
  basic,
  testChallenge,
  testRedirectUri,
  testRequest,
  testSecret,
  testServer,
  testVerifier,
} from "../testing/test-server.ts";
import type { TestServer } from "../testing/test-server.ts";

const api = "https://api.example";
const strictApi = "https://strict.example/a";

async function tokens(
  server: TestServer,
  more: Readonly<Record<string, string>> = {},
  id = "app",
): Promise<Readonly<Record<string, string>>> {
  const request = { ...testRequest, ...testChallenge, client_id: id, scope: "openid", ...more };
  const answer = await server.authorize(server.browser(), request);
  const form = {
    grant_type: "authorization_code",
    code: answer.get("code")!,
    redirect_uri: testRedirectUri,
    code_verifier: testVerifier,
  };
  const given = await server.post("/token", form, { authorization: basic(id, testSecret) });
  assert.equal(given.status, 200, JSON.stringify(given.json));
  return given.json as Record<string, string>;
}

function formOf(token: string): string {
  const { alg, typ } = decodeProtectedHeader(token);
  return `${alg} ${typ}`;
}

async function userinfo(server: TestServer, token: string): Promise<{ status: number; json: Record<string, unknown> }> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await server.send({ method: "GET", url: `${server.issuer}/userinfo`, headers, body: undefined });
  return { status: answer.status, json: JSON.parse(answer.body) as Record<string, unknown> };
}

test("ID tokens are RS256 unless the client is registered otherwise; access tokens follow their audience", async (t) => {
  const cases = [
    { name: "defaults", flags: [], id: "RS256 JWT", access: "RS256 JWT", strict: "RS256 at+jwt" },
    {
      name: "--signing-algorithm",
      flags: ["--signing-algorithm", "ES256"],
      id: "ES256 JWT",
      access: "ES256 JWT",
      strict: "ES256 at+jwt",
    },
    { name: "--strict", flags: ["--strict"], id: "RS256 JWT", access: "RS256 at+jwt", strict: "RS256 at+jwt" },
  ];
  for (const { name, flags, id, access, strict } of cases) {
    const server = await testServer(t, {
      flags: [...flags, "--audience-tokens", `${strictApi}=at+jwt;urn:x=ES256 JWT`],
    });
    await server.user();
    for (const client of ["app", "es", "rs"]) {
      const idTokenAlgorithm = client === "app" ? undefined : client === "es" ? "ES256" : "RS256";
      await server.client({ id: client, audiences: [api, strictApi, "urn:x"], idTokenAlgorithm });
    }
    const first = await tokens(server);
    assert.equal(formOf(first["id_token"]!), id, name);
    assert.equal(formOf(first["access_token"]!), access, name);
    assert.equal(formOf((await tokens(server, {}, "es"))["id_token"]!), "ES256 JWT", name);
    assert.equal(formOf((await tokens(server, {}, "rs"))["id_token"]!), "RS256 JWT", name);
    assert.equal(formOf((await tokens(server, { resource: strictApi }))["access_token"]!), strict, name);
    assert.equal(formOf((await tokens(server, { resource: "urn:x" }))["access_token"]!), "ES256 JWT", name);
    const keys = createLocalJWKSet(JSON.parse(server.context.keys.jwks) as JSONWebKeySet);
    await jwtVerify(first["id_token"]!, keys, {
      issuer: server.issuer,
      audience: "app",
      currentDate: new Date(server.clock.nowMs),
    });
    const { algorithms } = server.context.keys;
    assert.deepEqual(algorithms, ["RS256", "ES256"]);
  }
});

test("a token for several audiences has the form of the first one that settings name", async (t) => {
  const server = await testServer(t, { flags: ["--audience-tokens", `${strictApi}=ES256 at+jwt`] });
  await server.user();
  await server.client({ audiences: [strictApi] });
  const both = await tokens(server);
  assert.deepEqual(decodeJwt(both["access_token"]!).aud, [strictApi, server.issuer]);
  assert.equal(formOf(both["access_token"]!), "ES256 at+jwt");
});

test("whatever their type, an access token is no ID token here and an ID token no access token", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client();
  const given = await tokens(server);
  const [access, id] = [given["access_token"]!, given["id_token"]!];
  assert.equal(formOf(access), formOf(id));
  assert.equal((await userinfo(server, access)).status, 200);
  assert.equal((await userinfo(server, id)).status, 401);
  const inspected = await server.post("/introspect", { token: id }, { authorization: basic("app", testSecret) });
  assert.equal(inspected.json["active"], false);
  const logout = await server.browser().open(`${server.issuer}/logout?id_token_hint=${access}`);
  assert.equal(logout.status, 400);
});

test("roles, groups and claims of a user go by the scope of their name: userinfo, access token, introspection", async (t) => {
  const server = await testServer(t);
  await server.user();
  const { database } = server.context;
  const claims = { roles: ["admin", "editor"], groups: ["staff"], department: "sales" };
  await updateUserSettings(database, "ann", { email: "ann@example.com", claims });
  const scope = "openid profile email roles groups department api";
  await server.client({ scope });
  await server.client({ id: "wide", scope, claimsInIdToken: true });
  const named = { name: "ann", preferred_username: "ann", email: "ann@example.com", email_verified: false };
  const some = await tokens(server, { scope: "openid roles api" });
  const access = decodeJwt(some["access_token"]!);
  assert.deepEqual(access["roles"], ["admin", "editor"]);
  assert.ok(!("groups" in access) && !("email" in access) && !("api" in access));
  assert.ok(!("roles" in decodeJwt(some["id_token"]!)), "only where the client wants them");
  const { sub, ...told } = (await userinfo(server, some["access_token"]!)).json;
  assert.match(String(sub), /^usr_/);
  assert.deepEqual(told, { roles: ["admin", "editor"] });
  const inspected = await server.post(
    "/introspect",
    { token: some["access_token"]! },
    { authorization: basic("app", testSecret) },
  );
  assert.deepEqual(inspected.json["roles"], ["admin", "editor"]);
  const all = await tokens(server, { scope }, "wide");
  const {
    iss,
    aud,
    exp,
    iat,
    auth_time: _time,
    sid,
    acr,
    amr,
    at_hash: _hash,
    sub: _sub,
    ...rest
  } = decodeJwt(all["id_token"]!);
  assert.deepEqual(
    [iss, aud, exp! - iat!, typeof sid, typeof acr, amr],
    [server.issuer, "wide", 300, "string", "string", ["pwd"]],
  );
  assert.deepEqual(rest, { ...named, ...claims });
  const plain = decodeJwt(all["access_token"]!);
  assert.ok(!("email" in plain) && !("name" in plain), "resource servers get no more than they need");
  await updateUserSettings(database, "ann", { emailVerified: true, claims: { department: null, groups: [] } });
  const later = (await userinfo(server, all["access_token"]!)).json;
  assert.equal(later["email_verified"], true);
  assert.ok(!("department" in later) && !("groups" in later));
  await updateUserSettings(database, "ann", { email: "other@example.com" });
  assert.equal((await userinfo(server, all["access_token"]!)).json["email_verified"], false, "a new address");
});

test("a user's claim can be none of those that tokens have themselves, nor too large", async (t) => {
  const server = await testServer(t);
  await server.user();
  for (const name of ["sub", "aud", "client_id", "scope", "email", "exp", "active", "__proto__", "a b", ""]) {
    const changed = await updateUserSettings(server.context.database, "ann", {
      claims: JSON.parse(`{"${name}":"x"}`) as {},
    });
    assert.equal(changed.problems?.length, 1, name);
  }
  const large = { note: "x".repeat(4096) };
  assert.match(
    (await updateUserSettings(server.context.database, "ann", { claims: large })).problems?.join() ?? "",
    /more than 4096/,
  );
});

test("userinfo takes tokens for the issuer alone; those for a resource that was named are not for it", async (t) => {
  const server = await testServer(t, { flags: ["--default-audience", api] });
  await server.user();
  await server.client();
  const unnamed = await tokens(server);
  assert.deepEqual(decodeJwt(unnamed["access_token"]!).aud, [api, server.issuer]);
  assert.equal((await userinfo(server, unnamed["access_token"]!)).status, 200, "clients that name no resource");
  const named = await tokens(server, { resource: api });
  assert.equal(decodeJwt(named["access_token"]!).aud, api);
  const refused = await userinfo(server, named["access_token"]!);
  assert.equal(refused.status, 401);
  assert.match(String(refused.json["error_description"]), /another resource server/);
  const own = await tokens(server, { resource: server.issuer });
  assert.equal((await userinfo(server, own["access_token"]!)).status, 200);
  const without = await tokens(server, { scope: "profile" });
  assert.equal(decodeJwt(without["access_token"]!).aud, api, "nothing for userinfo where openid is not asked for");
});

test("every token answer names its scope: code, refresh and client credentials", async (t) => {
  const server = await testServer(t);
  await server.user();
  await server.client({
    scope: "openid profile offline_access api",
    grants: ["authorization_code", "refresh_token", "client_credentials"],
  });
  const first = await tokens(server, { scope: "openid profile offline_access" });
  assert.equal(first["scope"], "openid profile offline_access");
  const app = { authorization: basic("app", testSecret) };
  const form = { grant_type: "refresh_token", refresh_token: first["refresh_token"]! };
  assert.equal((await server.post("/token", form, app)).json["scope"], "openid profile offline_access");
  const own = await server.post("/token", { grant_type: "client_credentials", scope: "api" }, app);
  assert.equal(own.json["scope"], "api");
});
