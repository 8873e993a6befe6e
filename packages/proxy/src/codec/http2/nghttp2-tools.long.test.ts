// Programs of nghttp2 at both ends of the codecs: padded frames, small windows and tables, CONTINUATION, trailers.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { debianTool } from "../../../../../tests/tools/debian-tool.ts";
import { freePort, startProcess, waitFor } from "../../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../../tests/tools/run-command.ts";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { Http2Peer } from "../../testing/http2-peer.ts";
import { runProxy } from "../../testing/running-proxy.ts";

const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
const requestCount = 3000;

interface Row {
  readonly name: string;
  readonly host: readonly string[];
  readonly client: readonly string[];
}

const rows: readonly Row[] = [
  { name: "defaults", host: [], client: [] },
  { name: "small windows", host: ["-w10", "-W16"], client: ["-w10", "-W16"] },
  {
    name: "no table",
    host: ["--header-table-size=0", "--encoder-header-table-size=0"],
    client: ["--header-table-size=0", "--encoder-header-table-size=0"],
  },
  { name: "a large table", host: ["--header-table-size=65536"], client: ["--header-table-size=65536"] },
];

async function stage(t: TestContext, hostOptions: readonly string[]): Promise<{ url: string; file: string }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tulle-nghttp2-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "body");
  await writeFile(file, body);
  const port = await freePort();
  const options = ["--no-tls", "-a127.0.0.1", `-d${folder}`, "--echo-upload", "--trailer=x-sum: 1"];
  const host = await startProcess(await debianTool("nghttpd"), [...options, ...hostOptions, String(port)]);
  t.after(() => host.stop());
  await waitFor(async () => (await Http2Peer.connect(port)).socket.destroy(), { what: "nghttpd" }).catch(
    () => undefined,
  );
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2", enableTrailers: true });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config: { enableTrailers: true } });
  return { url: `http://127.0.0.1:${proxy.port}/body`, file };
}

for (const { name, host, client } of rows) {
  test(`h2load to nghttpd, ${name}: every answer is whole`, async (t) => {
    const { url, file } = await stage(t, host);
    const options = [`-n${requestCount}`, "-c3", "-m30", ...client];
    for (const more of [[], [`-d${file}`]]) {
      const count = more.length === 0 ? requestCount : requestCount / 10;
      const run = await runCommand(await debianTool("h2load"), [...options, `-n${count}`, ...more, url]);
      assert.match(run.stdout, new RegExp(`${count} done, ${count} succeeded, 0 failed, 0 errored`));
      assert.match(run.stdout, new RegExp(`\\(${count * body.length}\\) data`));
    }
  });

  test(`nghttp to nghttpd, ${name}, padded at both ends: the body comes back byte for byte`, async (t) => {
    const { url, file } = await stage(t, [...host, "-b255"]);
    const options = ["-b255", "--continuation", "--trailer=x-sum: 1", `-d${file}`];
    const windows = client.filter((option) => /^-[wW]|^--header/.test(option));
    const hash = createHash("sha256").update(body).digest("hex");
    const script = 'nghttp="$1"; shift; "$nghttp" "$@" | sha256sum';
    const run = await runCommand("sh", ["-c", script, "sh", await debianTool("nghttp"), ...options, ...windows, url]);
    assert.equal(run.stdout.slice(0, hash.length), hash, run.stderr);
  });
}
