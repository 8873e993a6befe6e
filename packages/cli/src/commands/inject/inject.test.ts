// `tulle inject` as a person starts it: files, folders and standard input, what it tells, and how it ends.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { temporaryFolder } from "../../../../../tests/tools/temporary-folder.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { processContext } from "../../process-context.ts";
import { runCli } from "../../run-cli.ts";

const pod = (name: string, more = ""): string =>
  `kind: Pod\nmetadata: { name: ${name}${more} }\nspec: { containers: [{ name: a }] }\n`;
const refused = pod("bad", ", annotations: { sidecar.istio.io/proxyCPU: much }");
const service = "kind: Service\nmetadata: { name: s }\n";

const base = processContext();

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(folder: string, args: readonly string[], stdin: Buffer | string = ""): Promise<Ran> {
  let stdout = "";
  let stderr = "";
  const context = Object.assign(Object.create(base) as CommandContext, {
    cwd: folder,
    env: {},
    isTerminal: false,
    stdout: (text: string) => void (stdout += text),
    stderr: (text: string) => void (stderr += text),
  });
  for (const [name, value] of Object.entries({ columns: undefined, stdin: Readable.from([stdin]) }))
    Object.defineProperty(context, name, { value });
  return { code: await runCli(["inject", ...args], context), stdout, stderr };
}

function folderOf(files: Readonly<Record<string, string | Buffer>>): string {
  const folder = temporaryFolder("tulle-inject-");
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

const isInjected = /name":"tulle-proxy"|name: tulle-proxy/g;

test("a file goes to standard output, alone", async () => {
  const folder = folderOf({ "app.yaml": pod("a") });
  const { code, stdout, stderr } = await run(folder, ["-f", "app.yaml"]);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  assert.ok(stdout.startsWith("kind: Pod\n"));
  assert.equal(stdout.match(isInjected)?.length, 1);
});

test("standard input is one, and -o names a file", async () => {
  const folder = folderOf({});
  const { code, stdout } = await run(folder, ["-f", "-", "-o", "out.yaml"], pod("a"));
  assert.deepEqual({ code, stdout }, { code: 0, stdout: "" });
  assert.match(readFileSync(path.join(folder, "out.yaml"), "utf8"), isInjected);
});

test("several files become documents of one output", async () => {
  const folder = folderOf({ "a.yaml": pod("a").trimEnd(), "b.yaml": `---\n${pod("b")}`, "s.yaml": service });
  const { code, stdout } = await run(folder, ["-f", "a.yaml", "b.yaml", "s.yaml"]);
  assert.equal(code, 0);
  assert.equal(stdout.match(/^---$/gm)?.length, 3);
  assert.equal(stdout.match(isInjected)?.length, 2);
});

test("a folder is written to a folder, file by file", async () => {
  const folder = folderOf({ "in/a.yaml": pod("a"), "in/s.yml": service, "in/notes.txt": "no" });
  assert.equal((await run(folder, ["-f", "in", "-o", "out"])).code, 0);
  assert.match(readFileSync(path.join(folder, "out/a.yaml"), "utf8"), isInjected);
  assert.equal(readFileSync(path.join(folder, "out/s.yml"), "utf8"), service);
  assert.ok(!existsSync(path.join(folder, "out/notes.txt")));
});

test("what stays is told, by the namespaces of other files as well", async () => {
  const folder = folderOf({
    "ns.yaml": "kind: Namespace\nmetadata: { name: shop, labels: { istio-injection: disabled } }\n",
    "a.yaml": pod("a", ", namespace: shop"),
  });
  const { code, stdout, stderr } = await run(folder, ["-f", "."]);
  assert.equal(code, 0);
  assert.doesNotMatch(stdout, isInjected);
  assert.equal(
    stderr,
    'Pod shop/a in a.yaml is not injected: its namespace has the label istio-injection="disabled"\n',
  );
});

test("where there is nothing to inject, that is told", async () => {
  const { code, stdout, stderr } = await run(folderOf({ "s.yaml": service }), ["-f", "s.yaml"]);
  assert.deepEqual(
    { code, stdout, stderr },
    { code: 0, stdout: service, stderr: "There is no pod in what was read.\n" },
  );
});

test("a refused pod writes nothing", async () => {
  const folder = folderOf({ "a.yaml": pod("a"), "bad.yaml": refused });
  const { code, stdout, stderr } = await run(folder, ["-f", "a.yaml", "bad.yaml", "-o", "out"]);
  assert.deepEqual({ code, stdout }, { code: 4, stdout: "" });
  assert.match(stderr, /^Pod default\/bad in bad\.yaml is refused: sidecar\.istio\.io\/proxyCPU is "much"/);
  assert.ok(!existsSync(path.join(folder, "out")));
});

const wrong: readonly {
  readonly name: string;
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly args: readonly string[];
  readonly code: number;
  readonly says: RegExp;
}[] = [
  { name: "no file", args: ["-f", "nowhere.yaml"], code: 1, says: /^tulle: there is no file nowhere\.yaml\n/ },
  {
    name: "a folder without manifests",
    files: { "in/a.txt": "" },
    args: ["-f", "in"],
    code: 1,
    says: /^tulle: in has no \.yaml, \.yml or \.json file\n/,
  },
  {
    name: "no UTF-8",
    files: { "a.yaml": Buffer.from([0xff, 0xfe, 0x00]) },
    args: ["-f", "a.yaml"],
    code: 1,
    says: /^tulle: a\.yaml is not UTF-8 text\n/,
  },
  { name: "no YAML", files: { "a.yaml": "kind: [\n" }, args: ["-f", "a.yaml"], code: 4, says: /\(a\.yaml:2:1\)/ },
  { name: "standard input among files", args: ["-f", "-", "a.yaml"], code: 2, says: /cannot be mixed/ },
  {
    name: "two outputs of one name",
    files: { "x/a.yaml": service, "y/a.yaml": service },
    args: ["-f", "x/a.yaml", "y/a.yaml", "-o", "out"],
    code: 1,
    says: /two of the files are called a\.yaml/,
  },
  {
    name: "values that are none",
    files: { "a.yaml": service, "v.yaml": "global: { proxy: { kind: nginx } }" },
    args: ["-f", "a.yaml", "--values-file", "v.yaml"],
    code: 2,
    says: /^tulle: v\.yaml: global\.proxy\.kind is "nginx"/,
  },
  {
    name: "values that are a list",
    files: { "a.yaml": service, "v.yaml": "[]" },
    args: ["-f", "a.yaml", "--values-file", "v.yaml", "--revision", "r"],
    code: 2,
    says: /^tulle: v\.yaml: the values are no fields/,
  },
  {
    name: "a mesh's configuration that is none",
    files: { "a.yaml": service, "m.yaml": "enablePrometheusMerge: maybe" },
    args: ["-f", "a.yaml", "--mesh-config-file", "m.yaml"],
    code: 2,
    says: /^tulle: m\.yaml: enablePrometheusMerge/,
  },
];
for (const { name, files = {}, args, code, says } of wrong) {
  test(`refuses ${name}`, async () => {
    const ran = await run(folderOf(files), args);
    assert.deepEqual({ code: ran.code, stdout: ran.stdout }, { code, stdout: "" });
    assert.match(ran.stderr, says);
  });
}

test("values, the mesh's configuration and the revision count", async () => {
  const folder = folderOf({
    "a.yaml": pod("a", ', annotations: { prometheus.io/port: "9102" }'),
    "v.yaml": "global: { hub: registry.example/mesh, tag: v2 }",
    "m.yaml": "enablePrometheusMerge: false",
  });
  const args = ["-f", "a.yaml", "--values-file", "v.yaml", "--mesh-config-file", "m.yaml", "--revision", "canary"];
  const { code, stdout } = await run(folder, args);
  assert.equal(code, 0);
  assert.match(stdout, /registry\.example\/mesh\/proxy:v2/);
  assert.match(stdout, /tulled-canary\.tulle-system\.svc:15012/);
  assert.match(stdout, /prometheus\.io\/port: "9102"/);
  assert.match(stdout, /"istio\.io\/rev": "canary"/);
});
