// `tulle auth` on a store: what it prints, what it refuses, and that secrets are shown once and nowhere else.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { loadConfig, openServer } from "@tulle/authorization-server";
import type { KeyListing } from "@tulle/authorization-server";
import { Logging } from "@tulle/telemetry";
import { exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { commands } from "../../commands.ts";
import { runCli } from "../../run-cli.ts";

let dataDir: string;

before(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
});

after(() => rmSync(dataDir, { recursive: true }));

async function auth(
  args: readonly string[],
  stdin = "",
  folder = dataDir,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const out = { stdout: "", stderr: "" };
  const context: CommandContext = {
    env: { TULLE_AUTH_PASSWORD_MEMORY_KIB: "8", TULLE_AUTH_PASSWORD_ITERATIONS: "1" },
    cwd: "/",
    stdin: Readable.from([Buffer.from(stdin)]),
    isTerminal: false,
    columns: undefined,
    stdout: (text) => void (out.stdout += text),
    stderr: (text) => void (out.stderr += text),
    eraseLines: () => undefined,
    instance: () => Promise.reject(new Error("no instance in this test")),
    printData: (data, format, text) => {
      out.stdout += format === "json" ? JSON.stringify(data) : text();
      return Promise.resolve();
    },
  };
  const code = await runCli(["auth", ...args, "--data-dir", folder], context, commands);
  return { code, ...out };
}

test("clients: create, show, change, disable, new secret, delete", async () => {
  const made = await auth([
    "client",
    "create",
    "--id",
    "web",
    "--redirect-uri",
    "https://a.example/cb",
    "--origin",
    "x",
  ]);
  assert.equal(made.code, exitCodes.failure);
  assert.match(made.stderr, /x is no origin/);
  const good = await auth([
    "client",
    "create",
    "--id",
    "web",
    "--redirect-uri",
    "https://a.example/cb",
    "--require-pkce",
    "-o",
    "json",
  ]);
  const created = JSON.parse(good.stdout) as Record<string, unknown>;
  assert.match(String(created["clientSecret"]), /^[\w-]{43}$/);
  assert.equal(created["requiresPkce"], true);
  const again = await auth(["client", "create", "--id", "web", "--redirect-uri", "https://a.example/cb"]);
  assert.match(again.stderr, /exists already/);
  const list = await auth(["client", "list", "-o", "json"]);
  assert.ok(!list.stdout.includes("ecret"), "no trace of a secret");
  const hmac = await auth(["client", "update", "web", "--id-token-algorithm", "HS256"]);
  assert.match(hmac.stderr, /no algorithm "HS256" for ID tokens; there are RS256, ES256/);
  const tokens = await auth([
    "client",
    "update",
    "web",
    "--id-token-algorithm",
    "ES256",
    "--claims-in-id-token",
    "-o",
    "json",
  ]);
  assert.match(tokens.stdout, /"idTokenAlgorithm":"ES256","claimsInIdToken":true/);
  const picture = await auth(["client", "update", "web", "--colour", "#0F5E63", "--logo", import.meta.filename]);
  assert.match(picture.stderr, /the logo is neither a PNG nor a JPEG/);
  assert.match((await auth(["client", "update", "web", "--logo", "nowhere.png"])).stderr, /--logo: .*nowhere\.png/);
  assert.match((await auth(["client", "update", "web", "--colour", "red"])).stderr, /not of the form #0f5e63/);
  assert.equal((await auth(["client", "update", "web", "--no-colour", "--no-logo"])).code, exitCodes.ok);
  const needed = await auth(["client", "update", "web", "--required-scope", "profile", "-o", "json"]);
  assert.match(needed.stdout, /"requiredScope":\["profile"\]/);
  const changed = await auth(["client", "update", "web", "--no-require-pkce", "--disable", "-o", "json"]);
  assert.match(changed.stdout, /"requiresPkce":false.*"disabled":true/);
  const secret = await auth(["client", "secret", "web"]);
  assert.match(secret.stdout, /client_secret +[\w-]{43}\n/);
  const short = await auth(["client", "secret", "web", "--secret-stdin"], "short\n");
  assert.match(short.stderr, /fewer than 32 characters/);
  assert.equal((await auth(["client", "secret", "web", "--secret-stdin"], `${"x".repeat(32)}\n`)).code, exitCodes.ok);
  assert.equal((await auth(["client", "delete", "web"])).stdout, "client web deleted\n");
  assert.equal((await auth(["client", "delete", "web"])).code, exitCodes.failure);
});

test("clients: a second secret beside the first, shown with its end, and ended by hand", async () => {
  await auth(["client", "create", "--id", "two", "--redirect-uri", "https://a.example/cb", "--trusted"]);
  assert.match((await auth(["client", "list"])).stdout, /two +confidential, trusted/);
  const replaced = await auth(["client", "secret", "two", "--overlap", "1d"]);
  assert.match(replaced.stdout, /client_secret +[\w-]{43}\n/);
  const until = /The secret before passes until (\S+);/.exec(replaced.stdout)![1]!;
  const show = await auth(["client", "show", "two"]);
  assert.match(show.stdout, new RegExp(`previous-secret-until +${until}`));
  assert.match(show.stdout, /^trusted +true/m);
  assert.doesNotMatch(show.stdout, /digest/i);
  assert.match((await auth(["client", "secret", "two", "--overlap", "soon"])).stderr, /no duration such as 12h/);
  assert.equal((await auth(["client", "secret", "two", "--end-previous", "--overlap", "1d"])).code, exitCodes.usage);
  assert.equal(
    (await auth(["client", "secret", "two", "--end-previous"])).stdout,
    "the previous secret of two has ended\n",
  );
  assert.doesNotMatch((await auth(["client", "show", "two"])).stdout, /previous-secret/);
  assert.match((await auth(["client", "update", "two", "--no-trusted", "-o", "json"])).stdout, /"isTrusted":false/);
  assert.match((await auth(["client", "show", "nobody"])).stderr, /there is no client nobody/);
  await auth(["client", "delete", "two"]);
});

test("users: the password comes from standard input alone", async () => {
  const without = await auth(["user", "create", "Ann"]);
  assert.equal(without.code, exitCodes.usage);
  assert.match(without.stderr, /--password-stdin/);
  const made = await auth(["user", "create", "Ann", "--password-stdin"], "correct horse\n");
  assert.match(made.stdout, /^user ann created \(sub usr_[\w-]{22}\)\n$/);
  assert.match((await auth(["user", "create", "ANN", "--password-stdin"], "correct horse")).stderr, /exists already/);
  assert.match((await auth(["user", "create", "bob", "--password-stdin"], "short")).stderr, /fewer than 8/);
  assert.ok(!(await auth(["user", "list", "-o", "json"])).stdout.includes("argon2"));
  assert.equal((await auth(["user", "password", "ann", "--password-stdin"], "another one")).code, exitCodes.ok);
  const claims = ["--role", "admin", "--role", "editor", "--claim", "department=sales", "--email-verified"];
  assert.equal((await auth(["user", "update", "ann", "--email", "ann@example.com", ...claims])).code, exitCodes.ok);
  assert.match(
    (await auth(["user", "list", "-o", "json"])).stdout,
    /"emailVerified":true,"claims":\{"department":"sales","roles":\["admin","editor"\]\}/,
  );
  assert.match((await auth(["user", "update", "ann", "--claim", "sub=x"])).stderr, /the claim sub is the server's own/);
  assert.equal((await auth(["user", "update", "ann", "--claim", "sub"])).code, exitCodes.usage);
  assert.equal((await auth(["user", "update", "ann", "--role", "", "--claim", "department="])).code, exitCodes.ok);
  assert.match((await auth(["user", "list", "-o", "json"])).stdout, /"claims":\{\}/);
  assert.equal((await auth(["user", "update", "ann", "--disable"])).code, exitCodes.ok);
  assert.match((await auth(["user", "list"])).stdout, /^ann +usr_\S+ +\S+ +disabled$/m);
  assert.equal((await auth(["user", "delete", "ann"])).code, exitCodes.ok);
});

test("keys, grants, sessions and the audit log can be read of an empty store", async () => {
  const rotated = await auth(["key", "rotate"]);
  assert.equal(rotated.code, exitCodes.failure);
  assert.match(rotated.stderr, /no signing keys yet; a server makes them at its first start/);
  assert.equal((await auth(["key", "list"])).stdout, "no signing keys\n");
  assert.equal((await auth(["grant", "list"])).stdout, "no grants\n");
  assert.equal((await auth(["session", "list"])).stdout, "no sessions\n");
  assert.match((await auth(["audit"])).stdout, /^TIME +EVENT/);
  const unknown = await auth(["audit", "7q3kz0a9vd"]);
  assert.equal(unknown.code, exitCodes.failure);
  assert.equal(unknown.stdout, "");
  assert.match(unknown.stderr, /nothing is known of the error id 7q3kz0a9vd/);
  assert.equal((await auth(["grant", "delete"])).code, exitCodes.usage);
  assert.match((await auth(["session", "delete", "nobody"])).stderr, /no user nobody/);
});

test("times of the audit log are ISO 8601 in JSON, and sessions are known by their browsers", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  try {
    await auth(["user", "create", "eve", "--password-stdin"], "a long enough password", folder);
    const events = JSON.parse((await auth(["audit", "-o", "json"], "", folder)).stdout) as Record<string, unknown>[];
    assert.deepEqual(
      events.map(({ event, at, lastAt }) => [event, new Date(String(at)).toISOString() === at, lastAt === at]),
      [["user created", true, true]],
    );
    using database = new DatabaseSync(path.join(folder, "store.sqlite"));
    const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    database
      .prepare(
        `INSERT INTO sessions (id, secret_digest, user_id, authenticated_at, created_at, seen_at, expires_at, user_agent, address)
         SELECT 'one', 'x', id, 0, 0, 0, 99999999999999, ?, '' FROM users`,
      )
      .run(firefox);
    assert.match((await auth(["session", "list"], "", folder)).stdout, /^one +eve .* Firefox, Linux$/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("rotating by hand keeps the running server's algorithms and lifetimes, whatever this command is told", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const argv = ["--data-dir", folder, "--signing-algorithm", "RS256", "--access-token-lifetime", "2h"];
  const { config } = loadConfig({ argv, environment: {} });
  const server = await openServer({ config: config!, log: new Logging({ sink: () => undefined }).logger("test") });
  try {
    const list = async (verb: string): Promise<readonly KeyListing[]> => {
      const { stdout, stderr, code } = await auth(["key", verb, "-o", "json"], "", folder);
      assert.equal(code, exitCodes.ok, stderr);
      return JSON.parse(stdout) as readonly KeyListing[];
    };
    const earlier = await list("list");
    const later = await list("rotate");
    for (const algorithm of ["RS256", "ES256"]) {
      const [first] = earlier.filter((key) => key.algorithm === algorithm && key.state === "active");
      const of = later.filter((key) => key.algorithm === algorithm);
      assert.deepEqual(of.map((key) => key.state).sort(), ["active", "next", "published"]);
      const retired = of.find((key) => key.state === "published")!;
      assert.equal(retired.id, first!.id);
      assert.ok(retired.publishedUntilMs! - Date.now() > 7_200_000, "as long as the server's tokens");
      assert.ok(retired.removedAfterMs! - Date.now() > 6 * 86_400_000, "as long as the server's sessions");
    }
    await server.context.keys.load();
    const signed = server.context.keys.sign("RS256", "JWT", {});
    const { kid } = JSON.parse(Buffer.from(signed.split(".")[0]!, "base64url").toString()) as { kid: string };
    assert.equal(later.find((key) => key.id === kid)?.algorithm, "RS256");
    const other = await auth(["key", "rotate", "--key-encryption-key-file", "/nonexistent/key"], "", folder);
    assert.equal(other.code, exitCodes.failure);
    assert.match(other.stderr, /cannot rotate/);
  } finally {
    await server.close();
    rmSync(folder, { recursive: true });
  }
});

test("a look at a store that is not there makes none", async () => {
  const missing = path.join(dataDir, "missing");
  const { code, stderr } = await auth(["user", "list"], "", missing);
  assert.equal(code, 1);
  assert.match(stderr, /there is no data directory .*missing\n.*--data-dir/);
  assert.ok(!existsSync(missing));
});
