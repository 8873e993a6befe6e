// A process that was started by a launcher ends with it, however the launcher ends.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

const moduleUrl = new URL("./end-with-launcher.ts", import.meta.url).href;

// The launcher starts a program that hangs until SIGTERM, and prints its process id once it runs.
const program = `
  import { endWithLauncher } from ${JSON.stringify(moduleUrl)};
  endWithLauncher();
  process.on("SIGTERM", () => { console.log("ended by SIGTERM, variable " + process.env.TULLE_LAUNCHER_FD); process.exit(0); });
  setInterval(() => {}, 1000);
  console.log("runs");
`;
const launcher = `
  import { spawn } from "node:child_process";
  spawn(process.execPath, ["--input-type=module", "-e", ${JSON.stringify(program)}], {
    stdio: ["ignore", "inherit", "inherit", "pipe"],
    env: { ...process.env, TULLE_LAUNCHER_FD: "3" },
  });
`;

test("SIGKILL of the launcher becomes SIGTERM of what it launched", async (t) => {
  const started = spawn(process.execPath, ["--input-type=module", "-e", launcher], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => started.kill("SIGKILL"));
  let output = "";
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output === "runs\n") started.kill("SIGKILL");
  });
  // The launched program holds the pipe until it ends too.
  await once(started.stdout, "close");
  assert.equal(output, "runs\nended by SIGTERM, variable undefined\n");
});
