// Kubeconfigs as people have them: several files, data beside files, programs that print credentials, and mistakes.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { ManualClock } from "@tulle/timing/testing";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { inClusterAccess } from "./in-cluster.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly rest?: object;
}

/** One context, `a`, with what is given beside what it needs. */
function kubeconfig({ cluster = {}, user = {}, context = {}, rest = {} }: Parts = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.1:6443/", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "a", context: { cluster: "c", user: "u", ...context } }],
    "current-context": "a",
    ...rest,
  });
}

async function accessOf(files: Readonly<Record<string, string>>, options: { context?: string } = {}) {
  const folder = temporaryFolder("tulle-kubeconfig-");
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), content, { mode: 0o755 });
  }
  const names = Object.keys(files).filter((name) => name.endsWith(".conf"));
  const environment = { KUBECONFIG: names.map((name) => path.join(folder, name)).join(":"), HOME: folder };
  const clock = new ManualClock(Date.parse("2026-06-01T00:00:00Z"));
  const access = await kubeconfigAccess({ environment, clock, ...options });
  return { access: access!, folder, clock };
}

test("data in the file beats a file's name, and a file is meant from the kubeconfig's folder", async () => {
  const { access } = await accessOf({
    "a.conf": kubeconfig({
      cluster: { "certificate-authority": "pki/ca.crt", "tls-server-name": "api", "proxy-url": "http://proxy:3128" },
      user: { "client-certificate-data": base64("CERT"), "client-certificate": "nowhere", "client-key": "pki/key" },
      context: { namespace: "shop" },
    }),
    "pki/ca.crt": "CA",
    "pki/key": "KEY",
  });
  assert.deepEqual(
    [access.server, access.authorityPem, access.serverName, access.proxyUrl, access.namespace, access.anyCertificate],
    ["https://10.0.0.1:6443", "CA", "api", "http://proxy:3128", "shop", false],
  );
  assert.deepEqual(await access.credentials.current(), { certificatePem: "CERT", keyPem: "KEY" });
});

test("of several files the first that says a thing wins, and those that are not there are passed over", async () => {
  const { access } = await accessOf({
    "a.conf": JSON.stringify({ "current-context": "b", users: [{ name: "u", user: { token: "first" } }] }),
    "b.conf": kubeconfig({
      user: { token: "second" },
      rest: { contexts: [{ name: "b", context: { cluster: "c", user: "u" } }], "current-context": "a" },
    }),
  });
  assert.deepEqual(await access.credentials.current(), { token: "first" });
  assert.match(access.origin, /b\.conf, context "b"$/);
});

test("nothing at all is no access, and no error", async () => {
  const folder = temporaryFolder("tulle-kubeconfig-");
  const environment = { HOME: folder, KUBECONFIG: path.join(folder, "none") };
  assert.equal(await kubeconfigAccess({ environment, clock: new ManualClock() }), undefined);
});

test("a name and password, a token's file, and whom one acts for", async () => {
  const { access } = await accessOf({
    "a.conf": kubeconfig({ user: { username: "me", password: "p:w", as: "other", "as-groups": ["g1", "g2"] } }),
  });
  assert.deepEqual(await access.credentials.current(), { basic: { username: "me", password: "p:w" } });
  assert.deepEqual(access.impersonation, { user: "other", groups: ["g1", "g2"], extra: {} });
  const {
    access: byFile,
    folder,
    clock,
  } = await accessOf({
    "a.conf": kubeconfig({ user: { tokenFile: "token", token: "stale" } }),
    token: "one\n",
  });
  assert.deepEqual(await byFile.credentials.current(), { token: "one" });
  await writeFile(path.join(folder, "token"), "two");
  assert.deepEqual(await byFile.credentials.current(), { token: "one" });
  clock.pass(60_000);
  assert.deepEqual(await byFile.credentials.current(), { token: "two" });
  await writeFile(path.join(folder, "token"), "three");
  byFile.credentials.refused({ token: "two" });
  assert.deepEqual(await byFile.credentials.current(), { token: "three" });
});

/** Prints a token that tells how often it was asked, and what it was told. */
const plugin = `#!/bin/sh
echo x >> "$0.count"
count=$(wc -l < "$0.count")
cat <<END
{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
 "status":{"token":"$1-$GREETING-$count","expirationTimestamp":"2026-06-01T01:00:00Z"}}
END
`;
const exec = {
  apiVersion: "client.authentication.k8s.io/v1",
  command: "./plugin",
  args: ["first"],
  env: [{ name: "GREETING", value: "hello" }],
  interactiveMode: "Never",
};

test("a program that prints credentials is asked once, again before they end, and when they are refused", async () => {
  const { access, clock } = await accessOf({ "a.conf": kubeconfig({ user: { exec } }), plugin });
  const both = await Promise.all([access.credentials.current(), access.credentials.current()]);
  assert.deepEqual(both, [{ token: "first-hello-1" }, { token: "first-hello-1" }]);
  clock.pass(3_600_000 - 10_000);
  const second = await access.credentials.current();
  assert.deepEqual(second, { token: "first-hello-2" });
  access.credentials.refused({ token: "another" });
  access.credentials.refused(second);
  assert.deepEqual(await access.credentials.current(), { token: "first-hello-3" });
});

const wrongPrograms: readonly { readonly name: string; readonly exec: object; readonly says: RegExp }[] = [
  {
    name: "is not there",
    exec: { ...exec, command: "no-such-plugin", installHint: "Get it from your cloud." },
    says: /^no-such-plugin, which the kubeconfig names for credentials, is not there\nGet it from your cloud\.$/,
  },
  { name: "fails", exec: { ...exec, command: "false" }, says: /ended with 1$/ },
  { name: "prints no JSON", exec: { ...exec, command: "echo" }, says: /printed no JSON$/ },
  {
    name: "prints another thing",
    exec: { ...exec, command: "echo", args: ['{"kind":"Pod","apiVersion":"v1"}'] },
    says: /printed a v1 Pod; the kubeconfig asks for an ExecCredential/,
  },
  {
    name: "prints no credentials",
    exec: { ...exec, command: "echo", args: [`{"kind":"ExecCredential","apiVersion":"${exec.apiVersion}"}`] },
    says: /neither a token nor a certificate with its key$/,
  },
];

for (const { name, exec: wrong, says } of wrongPrograms) {
  test(`a program for credentials that ${name} is told of by name`, async () => {
    const { access } = await accessOf({ "a.conf": kubeconfig({ user: { exec: wrong } }) });
    await assert.rejects(access.credentials.current(), { message: says });
  });
}

const wrongFiles: readonly {
  readonly name: string;
  readonly content: string;
  readonly context?: string;
  readonly says: RegExp;
}[] = [
  { name: "no YAML", content: "a: [", says: /a\.conf is no kubeconfig: / },
  { name: "a list", content: "[]", says: /a\.conf is no kubeconfig: it holds no mapping$/ },
  {
    name: "a context that is not there",
    content: kubeconfig(),
    context: "b",
    says: /a\.conf: there is no context "b"; there are "a"$/,
  },
  {
    name: "no current context",
    content: kubeconfig({ rest: { "current-context": "" } }),
    says: /no context is chosen; name one of "a" by --context$/,
  },
  {
    name: "a user that is not there",
    content: kubeconfig({ context: { user: "nobody" } }),
    says: /the context "a" names the user "nobody", which is not there$/,
  },
  { name: "a server that is no URL", content: kubeconfig({ cluster: { server: "api" } }), says: /"api" is no URL$/ },
  {
    name: "an authority that cannot be read",
    content: kubeconfig({ cluster: { "certificate-authority": "/nowhere/ca" } }),
    says: /certificate-authority \/nowhere\/ca cannot be read: ENOENT$/,
  },
  {
    name: "a certificate without a key",
    content: kubeconfig({ user: { "client-certificate-data": base64("x") } }),
    says: /client-certificate and client-key are needed together$/,
  },
  {
    name: "a way of signing in that is gone",
    content: kubeconfig({ user: { "auth-provider": { name: "gcp" } } }),
    says: /auth-provider is gone since Kubernetes 1\.26; use exec$/,
  },
  {
    name: "a program's version that is not known",
    content: kubeconfig({ user: { exec: { ...exec, apiVersion: "client.authentication.k8s.io/v1alpha1" } } }),
    says: /v1alpha1; client\.authentication\.k8s\.io\/v1 and \S+v1beta1 are understood$/,
  },
];

for (const { name, content, context, says } of wrongFiles) {
  test(`a kubeconfig with ${name} is refused in words`, async () => {
    await assert.rejects(accessOf({ "a.conf": content }, context === undefined ? {} : { context }), {
      name: "KubeconfigError",
      message: says,
    });
  });
}

test("a pod's own account: its address of either family, its token and its namespace", async () => {
  const folder = temporaryFolder("tulle-kubeconfig-");
  const clock = new ManualClock();
  const environment = { KUBERNETES_SERVICE_HOST: "fd00:96::1", KUBERNETES_SERVICE_PORT: "443" };
  assert.equal(await inClusterAccess(environment, clock, folder), undefined);
  for (const [name, text] of Object.entries({ "ca.crt": "CA", namespace: "tulle-system\n", token: "t1" })) {
    await writeFile(path.join(folder, name), text);
  }
  assert.equal(await inClusterAccess({}, clock, folder), undefined);
  const access = (await inClusterAccess(environment, clock, folder))!;
  assert.deepEqual(
    [access.server, access.authorityPem, access.namespace],
    ["https://[fd00:96::1]:443", "CA", "tulle-system"],
  );
  assert.deepEqual(await access.credentials.current(), { token: "t1" });
});
