// Who gets the secrets of a sign-in, and that they last.
import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { loadText, MemoryStore } from "@tulle/config";
import { SecretSchema } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import { StateFolder } from "../state/state-folder.ts";
import { LoginSecrets, openLoginRootSecret } from "./login-secrets.ts";

const manifest = (secret: string): string => `
apiVersion: security.tulle.io/v1alpha1
kind: BrowserLogin
metadata: { name: account, namespace: shop }
spec:
  gateways: [public]
  provider: { issuer: "https://issuer.test" }
  clientID: gateway
  clientSecret: { name: client }
---
apiVersion: v1
kind: Secret
metadata: { name: client, namespace: shop }
stringData: { client-secret: ${secret} }
`;

async function storeOf(text: string): Promise<MemoryStore> {
  const store = new MemoryStore();
  await store.applyAll(loadText(text, "login.yaml").resources);
  return store;
}

const client = "browser-login://shop/account/client-secret";
const cookies = "browser-login://shop/account/cookie-secret";
const rootSecret = Buffer.alloc(32, 7);

function valueOf(secrets: LoginSecrets, name: string, namespace: string): string | undefined {
  const found = secrets.find(name, namespace);
  if (found === undefined) return undefined;
  const { type } = fromBinary(SecretSchema, found.any.value);
  assert.ok(type.case === "genericSecret" && type.value.secret?.specifier.case === "inlineBytes");
  return Buffer.from(type.value.secret.specifier.value).toString("latin1");
}

test("gateways of the login's namespace and of the mesh's get them, others do not", async () => {
  const secrets = new LoginSecrets(await storeOf(manifest("one")), rootSecret);
  assert.equal(valueOf(secrets, client, "shop"), "one");
  assert.equal(valueOf(secrets, client, "tulle-system"), "one");
  for (const name of [client, cookies]) assert.equal(secrets.find(name, "elsewhere"), undefined);
  for (const name of ["kubernetes://client", "browser-login://shop/other/cookie-secret", "", `${client}/`]) {
    assert.equal(secrets.find(name, "shop"), undefined, name);
  }
});

test("the cookie secret is of one login and one namespace, and the same after a restart", async () => {
  const store = await storeOf(manifest("one"));
  const secrets = new LoginSecrets(store, rootSecret);
  const value = valueOf(secrets, cookies, "shop");
  assert.equal(value?.length, 32);
  assert.notEqual(valueOf(secrets, cookies, "tulle-system"), value);
  assert.equal(valueOf(new LoginSecrets(store, rootSecret), cookies, "shop"), value);
  assert.notEqual(valueOf(new LoginSecrets(store, Buffer.alloc(32, 8)), cookies, "shop"), value);
  assert.equal(secrets.find(cookies, "shop"), secrets.find(cookies, "shop"), "sent once");
});

test("a changed Secret is another resource, and one without the key is none", async () => {
  const store = await storeOf(manifest("one"));
  const secrets = new LoginSecrets(store, rootSecret);
  const before = secrets.find(client, "shop");
  await store.applyAll(loadText(manifest("two"), "login.yaml").resources);
  assert.equal(valueOf(secrets, client, "shop"), "two");
  assert.notEqual(secrets.find(client, "shop")!.version, before!.version);
  await store.applyAll(loadText(manifest("two").replace("client-secret:", "other:"), "login.yaml").resources);
  assert.equal(secrets.find(client, "shop"), undefined);
});

test("the root secret is made once, for its owner alone", async (t) => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tulle-login-"));
  t.after(() => rm(folder, { recursive: true }));
  const state = new StateFolder(folder, { warning: () => undefined });
  const made = await openLoginRootSecret(state);
  assert.equal(made.length, 32);
  assert.deepEqual(await openLoginRootSecret(state), made);
  const file = path.join(folder, "cookie-secret");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await writeFile(file, "short\n");
  await assert.rejects(openLoginRootSecret(state), /damaged/);
});
