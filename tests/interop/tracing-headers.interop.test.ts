// The programs of docs/tracing.md, in four languages: each is run as it stands there, and passes on what it says.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { freePort, startProcess, waitFor } from "../tools/processes.ts";
import { runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const page = path.resolve(import.meta.dirname, "../../docs/tracing.md");

const programs: Readonly<Record<string, { readonly file: string; readonly command: readonly string[] }>> = {
  node: { file: "application.mjs", command: [process.execPath, "application.mjs"] },
  python: { file: "application.py", command: ["python3", "application.py"] },
  go: { file: "application.go", command: ["./application"] },
  java: { file: "Application.java", command: ["java", "-Xmx128m", "Application.java"] },
};

const passed: Readonly<Record<string, string>> = {
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "a=b,c=d",
  baggage: "user=ann",
  "x-request-id": "a-request",
  b3: "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
  "x-b3-traceid": "0af7651916cd43dd8448eb211c80319c",
  "x-b3-spanid": "b7ad6b7169203331",
  "x-b3-parentspanid": "c7ad6b7169203331",
  "x-b3-sampled": "1",
  "x-b3-flags": "0",
};

for (const [language, { file, command }] of Object.entries(programs)) {
  test(`${language}: what came with a request goes on with the next`, async () => {
    const text = await readFile(page, "utf8");
    const source = text.split(`<!-- snippet: ${language} -->`)[1]?.match(/```\w+\n(.*?)```/s)?.[1];
    assert.ok(source);
    const folder = temporaryFolder("tulle-tracing-headers-");
    await writeFile(path.join(folder, file), source);
    if (language === "go") {
      const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/local/go/bin`, CGO_ENABLED: "0" };
      const built = await runCommand("go", ["build", file], { cwd: folder, env, timeoutMs: 600_000 });
      assert.equal(built.code, 0, built.stderr);
    }
    let seen: IncomingHttpHeaders = {};
    await using next = createServer((request, response) => {
      seen = request.headers;
      response.end("the next one's");
    });
    next.listen(0, "127.0.0.1");
    await once(next, "listening");
    const port = await freePort();
    const env = {
      HOST: "127.0.0.1",
      PORT: String(port),
      NEXT_URL: `http://127.0.0.1:${(next.address() as AddressInfo).port}/`,
    };
    await using program = await startProcess(command[0]!, command.slice(1), { cwd: folder, env, name: language });
    let body = "";
    const answers = async (): Promise<boolean> => {
      const headers = { ...passed, cookie: "secret=1", connection: "close" };
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers }).catch(() => undefined);
      body = (await answer?.text()) ?? "";
      return answer !== undefined;
    };
    await waitFor(answers, { what: `the program in ${language}`, details: () => program.output() });
    assert.equal(body, "the next one's");
    assert.partialDeepStrictEqual(seen, passed);
    assert.equal(seen.cookie, undefined);
    next.closeAllConnections();
  });
}
