// What the authority's listing says in each phase of a change of root, and the commands against a real control plane in
// this process.
import assert from "node:assert/strict";
import path from "node:path";
import { Readable } from "node:stream";
import { test, type TestContext } from "node:test";
import { runManifestControlPlane } from "@tulle/control-plane";
import type { AuthorityStatus } from "@tulle/config/api";
import type { Instance } from "@tulle/local/instance";
import { Logging } from "@tulle/telemetry";
import { temporaryFolder } from "../../../../../tests/tools/temporary-folder.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { commands } from "../../commands.ts";
import { runCli } from "../../run-cli.ts";
import { authorityText } from "./ca-show.ts";

const certificate = (subject: string, serial: string) => ({
  subject,
  serial,
  notBefore: "2026-11-20T12:00:00.000Z",
  notAfter: "2036-11-17T12:00:00.000Z",
});
const table = `ROLE     SUBJECT                           SERIAL  VALID UNTIL
signs    O=cluster.local, CN=Intermediate  01      2036-11-17
trusted  O=cluster.local, CN=Root          02      2036-11-17
`;
const base = {
  trustDomain: "cluster.local",
  isBroughtAlong: false,
  signing: certificate("O=cluster.local, CN=Intermediate", "01"),
  roots: [certificate("O=cluster.local, CN=Root", "02")],
};
const phaseEnds = "2026-11-21T12:00:00.000Z";

const cases: readonly { readonly name: string; readonly status: AuthorityStatus; readonly expected: string }[] = [
  { name: "steady", status: { ...base, phase: "steady" }, expected: "The authority is the mesh's own." },
  {
    name: "steady, of the user",
    status: { ...base, phase: "steady", isBroughtAlong: true },
    expected: "The authority is yours (cacerts).",
  },
  {
    name: "introducing",
    status: { ...base, phase: "introducing", phaseEnds },
    expected: "New roots are being made known; the new authority signs from 2026-11-21T12:00:00.000Z.",
  },
  {
    name: "retiring",
    status: { ...base, phase: "retiring", phaseEnds },
    expected: "The new authority signs; the old roots are trusted until 2026-11-21T12:00:00.000Z.",
  },
];

for (const { name, status, expected } of cases) {
  test(name, () => {
    assert.equal(authorityText(status, undefined), `Trust domain cluster.local. ${expected}\n\n${table}`);
  });
}

type Run = (line: string) => Promise<{ readonly exitCode: number; readonly stdout: string; readonly stderr: string }>;

async function startShell(t: TestContext, hasAuthority: boolean): Promise<Run> {
  const dir = temporaryFolder("tulle-cli-");
  const stateDir = path.join(dir, ".tulle");
  const plane = await runManifestControlPlane({
    stateDirectory: stateDir,
    ...(hasAuthority ? { xdsTlsAddress: { host: "127.0.0.1", port: 0 } } : {}),
    httpAddress: { host: "127.0.0.1", port: 0 },
    logging: new Logging({ level: "error" }),
  });
  t.after(() => plane.close());
  const instance = {
    dir,
    stateDir,
  } as unknown as Instance;
  return async (line) => {
    let stdout = "";
    let stderr = "";
    const context: CommandContext = {
      env: {},
      cwd: dir,
      stdin: Readable.from([]),
      isTerminal: false,
      columns: undefined,
      stdout: (text) => void (stdout += text),
      stderr: (text) => void (stderr += text),
      eraseLines: () => undefined,
      instance: async () => instance,
      printData: async (data, format, text) => {
        stdout += format === undefined ? text() : JSON.stringify(data);
      },
    };
    const exitCode = await runCli(line.split(" "), context, commands);
    return { exitCode, stdout, stderr };
  };
}

test("the root changes once at a time", async (t) => {
  const run = await startShell(t, true);
  const before = JSON.parse((await run("ca show -o json")).stdout) as AuthorityStatus;
  assert.equal(before.phase, "steady");
  const short = await run("ca rotate-root --introduce-seconds 60 --overlap-seconds 60");
  assert.equal(short.exitCode, 1);
  assert.match(short.stderr, /an overlap of 60 s would drop the old root under certificates that live 86400 s/);
  const begun = await run("ca rotate-root --introduce-seconds 60 --overlap-seconds 60 --force -o json");
  assert.equal(begun.exitCode, 0, begun.stderr);
  const status = JSON.parse(begun.stdout) as AuthorityStatus;
  assert.equal(status.phase, "introducing");
  assert.equal(status.roots.length, 2);
  const again = await run("ca rotate-root");
  assert.equal(again.exitCode, 1);
  assert.match(again.stderr, /new roots are being introduced already: wait until they sign/);
  assert.equal((await run("ca rotate-root --introduce-seconds soon")).exitCode, 2);
});

test("a control plane without an authority says how to get one", async (t) => {
  const run = await startShell(t, false);
  for (const line of ["ca show", "ca rotate-root"]) {
    const { exitCode, stderr } = await run(line);
    assert.equal(exitCode, 1);
    assert.match(stderr, /this control plane is no certificate authority: --xds-tls makes it one/);
  }
});
