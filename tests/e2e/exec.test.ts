// `tulle exec` in a running shop: what the command sees, what it is given, and how it ends.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { describe, test } from "node:test";
import { inTime, startProcess, waitFor, type StartedProcess } from "../tools/processes.ts";
import { useRunningShop } from "./running-shop.ts";
import { commandEntry, type CommandResult, type ShopInstance } from "./shop-instance.ts";

describe("tulle exec", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));

  const exec = (...args: readonly string[]): Promise<CommandResult> => shop.tulle("exec", ...args);

  /** Another run of this test may have the machine's ports for a moment. */
  async function execWithPorts(...args: readonly string[]): Promise<string> {
    let last: CommandResult | undefined;
    const whole = await waitFor(
      async () => {
        last = await exec(...args);
        return /localhost:\d+ is this machine's/.test(last.stderr) ? undefined : last;
      },
      { what: "the pod's ports at localhost", intervalMs: 200, details: () => last?.stderr ?? "" },
    );
    assert.equal(whole.code, 0, whole.stderr);
    return whole.stdout;
  }

  const rule = (active: boolean): readonly string[] => {
    const header = ["-H", "Content-Type: application/json"];
    return ["-sS", ...header, "-d", JSON.stringify({ active, type: "500" }), "localhost:3000/blowup"];
  };

  test("has the pod's application and its proxy's pages at localhost, as in a container", async () => {
    const on = await execWithPorts("catalog-v1", "-n", "shop", "--", "curl", ...rule(true));
    assert.match(on, /^blowups on: 100 %/);
    const { app } = await shop.pod("catalog-v1");
    const status = async (address: string): Promise<number> => (await fetch(`http://${address}:3000/items/1`)).status;
    try {
      assert.equal(await status(app!.address), 500);
      assert.equal(await status((await shop.pod("catalog-v2")).app!.address), 200);
    } finally {
      assert.match(await execWithPorts("catalog-v1", "--", "curl", ...rule(false)), /^blowups off/);
    }
    assert.equal(await status(app!.address), 200);
    const level = ["curl", "-sS", "-X", "POST", "localhost:15000/logging?http=debug"];
    assert.match(await execWithPorts("deploy/catalog-v1", "--", ...level), /http: debug/);
    const back = ["curl", "-sS", "-X", "POST", "localhost:15000/logging?http=warning"];
    assert.match(await execWithPorts("catalog-v1.shop", "--", ...back), /http: warning/);
  });

  test("gives the container's environment and folder, and its way through the proxy", async () => {
    const pod = await shop.pod("catalog-v2");
    const script = `const { POD_NAME, SHOW_IMAGE, HOST, PORT, HTTP_PROXY, TULLE_DIR } = process.env;
      console.log(JSON.stringify({ POD_NAME, SHOW_IMAGE, HOST, PORT, HTTP_PROXY, TULLE_DIR, cwd: process.cwd() }));`;
    const { code, stdout, stderr } = await exec(pod.name, "-c", "catalog", "--", "node", "-e", script);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), {
      POD_NAME: pod.name,
      SHOW_IMAGE: "true",
      HOST: pod.app!.address,
      PORT: "3000",
      HTTP_PROXY: `http://${pod.address}:15007`,
      cwd: shop.folder,
    });
    const called = await exec("webapp", "--", "curl", "-sS", "-i", "http://catalog/items/1");
    assert.match(called.stdout, /^HTTP\/1\.1 200 OK\r\n[^]*x-envoy-upstream-service-time: \d+/i, called.stderr);
  });

  test("enters a gateway, and a sidecar by its name, as the proxy", async () => {
    const script = "console.log(process.env.TULLE_PROXY_TYPE, process.cwd())";
    for (const [args, type] of [
      [["tulle-ingressgateway"], "router"],
      [["catalog-v1", "-c", "istio-proxy"], "sidecar"],
      [["catalog-v1", "-c", "proxy"], "sidecar"],
    ] as const) {
      const { stdout, stderr } = await exec(...args, "--", "node", "-e", script);
      assert.match(stdout, new RegExp(`^${type} ${path.join(shop.folder, ".tulle", "pods")}`), stderr);
    }
  });

  const ends = [
    { name: "its exit status", argv: ["sh", "-c", "exit 7"], code: 7 },
    { name: "the end by a signal as shells count", argv: ["sh", "-c", "kill -TERM $$"], code: 143 },
    { name: "no such program", argv: ["no-such-program", "-v"], code: 127, says: /no-such-program: there is no such/ },
    { name: "what is no program", argv: ["/etc/passwd"], code: 126, says: /\/etc\/passwd: .*EACCES/ },
  ];
  for (const { name, argv, code, says = /^/ } of ends) {
    test(`ends as the command does: ${name}`, async () => {
      const ended = await exec("catalog-v1", "--", ...argv);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, says);
      assert.equal(ended.stdout, "");
    });
  }

  const refused = [
    { name: "an unknown pod", args: ["nobody", "--", "true"], code: 1, says: /there is no pod nobody[^]*catalog-v1-/ },
    { name: "more than one", args: ["catalog", "--", "true"], code: 1, says: /there is more than one pod catalog/ },
    {
      name: "an unknown container",
      args: ["catalog-v1", "-c", "db", "--", "true"],
      code: 1,
      says: /catalog-v1-\S+ has no container "db"\nIt has: catalog, istio-proxy/,
    },
    { name: "no command", args: ["catalog-v1"], code: 2, says: /missing required argument 'command'/ },
  ];
  for (const { name, args, code, says } of refused) {
    test(`refuses ${name}`, async () => {
      const ended = await exec(...args);
      assert.deepEqual([ended.code, ended.stdout], [code, ""], ended.stderr);
      assert.match(ended.stderr, says);
    });
  }

  function startExec(args: readonly string[], input?: string): Promise<StartedProcess> {
    return startProcess(process.execPath, [commandEntry, "exec", ...args], {
      name: "tulle exec",
      env: { TULLE_DIR: shop.folder },
      ...(input === undefined ? {} : { input }),
    });
  }

  test("passes standard input on, and both outputs apart, byte for byte", async () => {
    const input = `${"x".repeat(300_000)}\u001b[31m\n`;
    await using ran = await startExec(["catalog-v1", "--", "sh", "-c", "echo apart >&2; exec cat"], input);
    const { code } = await ran.exited;
    await waitFor(() => ran.child.stdout!.closed && ran.child.stderr!.closed, { what: "the command's output" });
    assert.equal(code, 0);
    assert.equal(ran.stdout() === input, true, `${ran.stdout().length} characters`);
    assert.match(ran.stderr(), /^apart$/m);
  });

  test("hands a signal on", async () => {
    const script = `process.on("SIGTERM", () => process.exit(9)); console.log("waits"); setInterval(() => {}, 1000)`;
    await using ran = await startExec(["catalog-v1", "--", "node", "-e", script]);
    await ran.waitForOutput(/^waits$/m);
    ran.kill("SIGTERM");
    assert.deepEqual(await ran.exited, { code: 9, signal: null });
  });

  test("is at the terminal, where Ctrl-C ends the command and nothing of the mesh", async () => {
    const before = await shop.processes();
    // It is ready before it says so: interrupted ahead of its trap a shell ends, and ahead of its child it waits.
    const command = "trap 'exit 5' INT; test -t 0 && test -t 1 && echo at $TERM; while :; do sleep 1; done";
    // The shell around it gives it its place: some shells would end by Ctrl-C, too.
    const line = `exec '${process.execPath}' '${commandEntry}' exec catalog-v1 -- sh -c "${command.replaceAll("$", "\\$")}"`;
    const env = { ...process.env, TULLE_DIR: shop.folder, TERM: "tulle-term" };
    const terminal = spawn("script", ["-qec", line, "/dev/null"], { env, stdio: ["pipe", "pipe", "inherit"] });
    let shown = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
    await waitFor(() => /at tulle-term/.test(shown), { what: "the command at its terminal", details: () => shown });
    terminal.stdin.write("\u0003");
    const [code] = (await inTime(once(terminal, "exit"), "the end of the command")) as [number];
    terminal.stdin.destroy();
    // What Ctrl-C means is the command's to say.
    assert.equal(code, 5, shown);
    assert.deepEqual(await shop.processes(), before);
  });
});
