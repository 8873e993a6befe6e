// A control plane that is named by the environment: asked by TLS, sent the token once it is known, and refused in words
// otherwise.
import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { runManifestControlPlane } from "@tulle/control-plane";
import { Logging } from "@tulle/telemetry";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { chooseInstance } from "./choose-instance.ts";
import { CommandFailure } from "../command/command-failure.ts";
import { requireHere } from "./control-plane-elsewhere.ts";
import { connect, withApiFailures } from "./instance-client.ts";

interface Elsewhere {
  readonly folder: string;
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
}

async function start(context: TestContext): Promise<Elsewhere> {
  const folder = temporaryFolder("tulle-elsewhere-");
  const stateDirectory = path.join(folder, "state");
  const running = await runManifestControlPlane({
    stateDirectory,
    xdsTlsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    logging: new Logging({ level: "off" }),
  });
  context.after(() => running.close());
  const [token, roots] = [path.join(folder, "token"), path.join(folder, "roots.pem")];
  await copyFile(path.join(stateDirectory, "token"), token);
  await copyFile(path.join(stateDirectory, "ca", "root-cert.pem"), roots);
  const url = `https://127.0.0.1:${running.httpAddress.port}`;
  const env = { TULLE_API: url, TULLE_TOKEN_FILE: token, TULLE_CA_FILE: roots, XDG_STATE_HOME: folder };
  return { folder, url, env };
}

/** What comes of listing, or the failure with its hint. */
async function list(env: Elsewhere["env"], cwd: string): Promise<string> {
  try {
    const instance = await chooseInstance({ env, cwd });
    const { items } = await withApiFailures(instance, () => connect(instance).list("Pod"));
    return `${items.length} pods`;
  } catch (error) {
    assert.ok(error instanceof CommandFailure, String(error));
    return `${error.exitCode} ${error.message}\n${error.hint}`;
  }
}

test("it is asked by TLS with the token, and a folder that is named comes first", async (context) => {
  const { env, folder } = await start(context);
  assert.equal(await list(env, folder), "0 pods");
  await assert.rejects(chooseInstance({ dir: folder, env, cwd: folder }), /nothing runs in/);
  const elsewhere = await chooseInstance({ env, cwd: folder });
  assert.throws(() => requireHere(elsewhere), /runs elsewhere/);
});

test("what is missing or wrong is told", async (context) => {
  const { env, folder, url } = await start(context);
  const other = await start(context);
  const wrong = path.join(folder, "wrong");
  await writeFile(wrong, "wrong");
  const { TULLE_TOKEN_FILE: _, ...withoutToken } = env;
  const rows: readonly (readonly [env: Record<string, string>, told: RegExp])[] = [
    [{ ...env, TULLE_API: url.replace("https", "http") }, /^2 .*a token is sent over https alone/],
    [{ ...env, TULLE_API: "mesh.example:15014" }, /^2 .*over https alone/],
    [withoutToken, /^2 TULLE_API is set, and TULLE_TOKEN_FILE is not/],
    [{ ...env, TULLE_TOKEN_FILE: path.join(folder, "none") }, /^1 TULLE_TOKEN_FILE: ENOENT/],
    [{ ...env, TULLE_TOKEN_FILE: wrong }, /^1 .*\nTULLE_TOKEN_FILE has to hold the token/],
    [
      { ...env, TULLE_CA_FILE: other.env["TULLE_CA_FILE"]! },
      /^3 .*cannot be reached: .*\n.*a certificate of that authority/,
    ],
  ];
  for (const [given, told] of rows) assert.match(await list(given, folder), told);
});

test("whoever shows no certificate of the authority is sent no token", async (context) => {
  const { env, folder } = await start(context);
  let received = "";
  const impostor = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      socket.end("HTTP/1.1 200 OK\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => impostor.listen(0, "127.0.0.1", resolve));
  context.after(() => impostor.close());
  const { port } = impostor.address() as { readonly port: number };
  assert.match(await list({ ...env, TULLE_API: `https://127.0.0.1:${port}` }, folder), /^3 .*cannot be reached/);
  assert.equal(received[0], "\x16", "the begin of a handshake");
  assert.doesNotMatch(received, /Bearer|HTTP/);
});
