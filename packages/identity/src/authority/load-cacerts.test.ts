// A brought authority, made by OpenSSL as Istio's documentation shows, and every way in which such a folder goes wrong.
import assert from "node:assert/strict";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { openssl, type OpenSsl } from "../testing/openssl.ts";
import { dayMs, hourMs, issueTo } from "../testing/workload.ts";
import { CertificateAuthority } from "./certificate-authority.ts";
import { loadCacerts } from "./load-cacerts.ts";

/** OpenSSL dates certificates from its own now, which is a little later than that of this file. */
const nowMs = Math.floor(Date.now() / 1000) * 1000 + hourMs;

interface Folder {
  readonly ssl: OpenSsl;
  readonly path: string;
  readonly write: (name: string, content: string) => Promise<void>;
}

const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
const sign = (usage: string) =>
  `basicConstraints=critical,CA:TRUE,pathlen:${usage}\nkeyUsage=critical,keyCertSign,digitalSignature,cRLSign\nsubjectKeyIdentifier=hash\n`;

/** An intermediate by `root`, in files `<name>.pem` and `<name>.key`. */
async function intermediate(
  ssl: OpenSsl,
  name: string,
  options: {
    readonly issuer?: string;
    readonly extensions?: string;
    readonly days?: string;
    readonly newkey?: readonly string[];
  } = {},
): Promise<string> {
  const { issuer = "root", extensions = sign("0"), days = "730", newkey = curve } = options;
  await ssl.run(
    "req",
    "-new",
    ...newkey,
    "-nodes",
    "-keyout",
    `${name}.key`,
    "-subj",
    `/O=Istio/CN=${name}`,
    "-out",
    "csr.pem",
  );
  const file = await ssl.file(`${name}.ext`, extensions);
  return ssl.run(
    "x509",
    "-req",
    "-in",
    "csr.pem",
    "-CA",
    `${issuer}.pem`,
    "-CAkey",
    `${issuer}.key`,
    "-CAcreateserial",
    "-days",
    days,
    "-extfile",
    file,
    "-out",
    `${name}.pem`,
  );
}

async function root(ssl: OpenSsl, name: string, extensions = sign("1"), days = "3650"): Promise<void> {
  const config = `[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ext\n[dn]\nO=Istio\nCN=${name}\n[ext]\n${extensions}`;
  const file = await ssl.file(`${name}.cnf`, config);
  await ssl.run(
    "req",
    "-x509",
    ...curve,
    "-keyout",
    `${name}.key`,
    "-config",
    file,
    "-days",
    days,
    "-out",
    `${name}.pem`,
  );
}

/** root → intermediate in Istio's form: the chain file holds the intermediate and the root. Made once. */
let made: OpenSsl;
const ends: (() => Promise<void>)[] = [];
before(async () => {
  made = await makeCacerts(await openssl({ after: (end) => ends.push(end) }));
});
after(() => Promise.all(ends.map((end) => end())));

async function makeCacerts(ssl: OpenSsl): Promise<OpenSsl> {
  await root(ssl, "root");
  await intermediate(ssl, "ca");
  const folder = path.join(ssl.folder, "cacerts");
  await mkdir(folder);
  const read = (name: string) => ssl.run(...(name.endsWith(".key") ? ["pkey"] : ["x509"]), "-in", name);
  const [ca, rootPem, key] = await Promise.all([read("ca.pem"), read("root.pem"), read("ca.key")]);
  await writeFile(path.join(folder, "ca-cert.pem"), ca);
  await writeFile(path.join(folder, "ca-key.pem"), key);
  await writeFile(path.join(folder, "root-cert.pem"), rootPem);
  await writeFile(path.join(folder, "cert-chain.pem"), ca + rootPem);
  return ssl;
}

/** A copy for each test to change, with all that OpenSSL made beside it. */
async function cacerts(t: TestContext): Promise<Folder> {
  const ssl = await openssl(t);
  await cp(made.folder, ssl.folder, { recursive: true });
  const folder = path.join(ssl.folder, "cacerts");
  return { ssl, path: folder, write: (name, content) => writeFile(path.join(folder, name), content) };
}

test("Istio's folder signs workloads that OpenSSL verifies", async (t) => {
  const folder = await cacerts(t);
  const loaded = await loadCacerts(folder.path, nowMs);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.deepEqual(
    loaded.material.chain.map(({ subject }) => subject),
    ["O=Istio, CN=ca"],
  );
  const authority = new CertificateAuthority({
    trustDomain: "cluster.local",
    state: { phase: "steady", signing: loaded.material },
    now: () => nowMs,
  });
  const workload = await issueTo(authority, { nowMs });
  const chain = await folder.ssl.file("chain.pem", workload.chainPem);
  const roots = path.join(folder.path, "root-cert.pem");
  await folder.ssl.run(
    "verify",
    "-attime",
    String(nowMs / 1000),
    "-x509_strict",
    "-purpose",
    "sslclient",
    "-CAfile",
    roots,
    "-untrusted",
    chain,
    chain,
  );
});

const good: readonly {
  readonly name: string;
  readonly change: (folder: Folder) => Promise<void>;
  readonly chain: readonly string[];
}[] = [
  {
    name: "without a chain, below the root",
    change: ({ path: at }) => rm(path.join(at, "cert-chain.pem")),
    chain: ["ca"],
  },
  { name: "with an empty chain", change: ({ write }) => write("cert-chain.pem", "\n"), chain: ["ca"] },
  {
    name: "with several roots",
    change: async ({ ssl, write }) => {
      await root(ssl, "older");
      await write(
        "root-cert.pem",
        (await ssl.run("x509", "-in", "older.pem")) + (await ssl.run("x509", "-in", "root.pem")),
      );
    },
    chain: ["ca"],
  },
  {
    name: "two steps below the root",
    change: async ({ ssl, write }) => {
      await root(ssl, "root", sign("2"));
      await intermediate(ssl, "middle", { extensions: sign("1") });
      await intermediate(ssl, "low", { issuer: "middle" });
      await write("root-cert.pem", await ssl.run("x509", "-in", "root.pem"));
      await write("ca-cert.pem", await ssl.run("x509", "-in", "low.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "low.key"));
      await write(
        "cert-chain.pem",
        (await ssl.run("x509", "-in", "low.pem")) + (await ssl.run("x509", "-in", "middle.pem")),
      );
    },
    chain: ["low", "middle"],
  },
  {
    name: "with an RSA key in its old form",
    change: async ({ ssl, write }) => {
      await intermediate(ssl, "rsa", { newkey: ["-newkey", "rsa:2048"] });
      await write("ca-cert.pem", await ssl.run("x509", "-in", "rsa.pem"));
      await write("ca-key.pem", await ssl.run("rsa", "-in", "rsa.key", "-traditional"));
    },
    chain: ["rsa"],
  },
  {
    name: "that is the root itself",
    change: async ({ ssl, write }) => {
      await write("ca-cert.pem", await ssl.run("x509", "-in", "root.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "root.key"));
    },
    chain: [],
  },
];

for (const { name, change, chain } of good) {
  test(`a good folder: ${name}`, async (t) => {
    const folder = await cacerts(t);
    await change(folder);
    const loaded = await loadCacerts(folder.path, nowMs);
    assert.ok(loaded.ok, JSON.stringify(loaded));
    assert.deepEqual(
      loaded.material.chain.map(({ subject }) => subject.replace(/.*CN=/, "")),
      chain,
    );
  });
}

interface BadFolder {
  readonly name: string;
  readonly change: (folder: Folder) => Promise<void>;
  readonly atMs?: number;
  /** `code file`, and what the message says. */
  readonly expected: readonly (readonly [string, RegExp])[];
}

const bad: readonly BadFolder[] = [
  {
    name: "empty",
    change: async ({ path: at }) => {
      await rm(at, { recursive: true });
    },
    expected: [
      ["missing ca-cert.pem", /^ca-cert\.pem: the file is missing in /],
      ["missing ca-key.pem", /missing/],
      ["missing root-cert.pem", /missing/],
    ],
  },
  {
    name: "with the key of another",
    change: async ({ ssl, write }) => write("ca-key.pem", await ssl.run("pkey", "-in", "root.key")),
    expected: [["key-mismatch ca-key.pem", /ca-key\.pem does not belong to ca-cert\.pem/]],
  },
  {
    name: "with a key under a passphrase",
    change: async ({ ssl, write }) =>
      write("ca-key.pem", await ssl.run("pkey", "-in", "ca.key", "-aes256", "-passout", "pass:x")),
    expected: [["unreadable ca-key.pem", /without a passphrase/]],
  },
  {
    name: "with garbage everywhere",
    change: async ({ write }) => {
      for (const file of ["ca-cert.pem", "ca-key.pem", "root-cert.pem", "cert-chain.pem"]) await write(file, "hello");
    },
    expected: [
      ["unreadable ca-cert.pem", /no certificate in it/],
      ["unreadable cert-chain.pem", /no certificate in it/],
      ["unreadable root-cert.pem", /no certificate in it/],
      ["unreadable ca-key.pem", /no private key/],
    ],
  },
  {
    name: "with a certificate that is no CA",
    change: async ({ ssl, write }) => {
      await intermediate(ssl, "leaf", { extensions: "basicConstraints=CA:FALSE\n" });
      await write("ca-cert.pem", await ssl.run("x509", "-in", "leaf.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "leaf.key"));
    },
    expected: [["not-an-authority ca-cert.pem", /CN=leaf\) is no CA/]],
  },
  {
    name: "with a CA that may not sign certificates",
    change: async ({ ssl, write }) => {
      await intermediate(ssl, "mute", { extensions: "basicConstraints=critical,CA:TRUE\nkeyUsage=cRLSign\n" });
      await write("ca-cert.pem", await ssl.run("x509", "-in", "mute.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "mute.key"));
    },
    expected: [["not-an-authority ca-cert.pem", /keyUsage without keyCertSign/]],
  },
  {
    name: "whose certificate has expired",
    change: async () => {},
    atMs: nowMs + 731 * dayMs,
    expected: [["expired ca-cert.pem", /CN=ca\) expired at \d{4}-/]],
  },
  {
    name: "whose root has expired",
    change: async ({ ssl, write }) => {
      await root(ssl, "root", sign("1"), "10");
      await intermediate(ssl, "ca");
      await write("ca-cert.pem", await ssl.run("x509", "-in", "ca.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "ca.key"));
      await write("root-cert.pem", await ssl.run("x509", "-in", "root.pem"));
    },
    atMs: nowMs + 11 * dayMs,
    expected: [["expired ca-cert.pem", /CN=root\) expired at/]],
  },
  {
    name: "before its time",
    change: async () => {},
    atMs: nowMs - 2 * dayMs,
    expected: [["not-yet-valid ca-cert.pem", /is not valid before/]],
  },
  {
    name: "with the root of another",
    change: async ({ ssl, write }) => {
      await root(ssl, "stranger");
      await write("root-cert.pem", await ssl.run("x509", "-in", "stranger.pem"));
    },
    expected: [
      ["foreign-authority ca-cert.pem", /leads to no trusted root: no way through cert-chain\.pem to root-cert\.pem/],
    ],
  },
  {
    name: "with a gap in its chain",
    change: async ({ ssl, write }) => {
      await root(ssl, "root", sign("2"));
      await intermediate(ssl, "middle", { extensions: sign("1") });
      await intermediate(ssl, "low", { issuer: "middle" });
      await write("root-cert.pem", await ssl.run("x509", "-in", "root.pem"));
      await write("ca-cert.pem", await ssl.run("x509", "-in", "low.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "low.key"));
      await write("cert-chain.pem", await ssl.run("x509", "-in", "low.pem"));
    },
    expected: [["foreign-authority ca-cert.pem", /no way/]],
  },
  {
    name: "below a root that allows no intermediate",
    change: async ({ ssl, write }) => {
      await root(ssl, "root", sign("0"));
      await intermediate(ssl, "ca");
      await write("ca-cert.pem", await ssl.run("x509", "-in", "ca.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "ca.key"));
      await write("root-cert.pem", await ssl.run("x509", "-in", "root.pem"));
    },
    expected: [["path-too-long ca-cert.pem", /CN=root\) allows fewer authorities/]],
  },
  {
    name: "with a weak key",
    change: async ({ ssl, write }) => {
      await intermediate(ssl, "weak", { newkey: ["-newkey", "rsa:1024"] });
      await write("ca-cert.pem", await ssl.run("x509", "-in", "weak.pem"));
      await write("ca-key.pem", await ssl.run("pkey", "-in", "weak.key"));
    },
    expected: [
      ["unsuitable-key ca-key.pem", /at least 2048 bits, this one has 1024/],
      ["weak-cryptography ca-cert.pem", /at least 2048/],
    ],
  },
];

for (const { name, change, atMs = nowMs, expected } of bad) {
  test(`a folder refused: ${name}`, async (t) => {
    const folder = await cacerts(t);
    await change(folder);
    const loaded = await loadCacerts(folder.path, atMs);
    assert.ok(!loaded.ok);
    assert.deepEqual(
      loaded.problems.map(({ code, file }) => `${code} ${file}`),
      expected.map(([what]) => what),
    );
    for (const [index, [, message]] of expected.entries()) assert.match(loaded.problems[index]!.message, message);
  });
}
