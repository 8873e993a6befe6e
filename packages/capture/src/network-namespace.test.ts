// Networks that a process holds: what is made within one is of it, and the process itself stays where it was.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { ToolUnavailable } from "../../../tests/tools/tool-unavailable.ts";
import { runCommand } from "../../../tests/tools/run-command.ts";
import { NetworkNamespace } from "./network-namespace.ts";

function create(): NetworkNamespace {
  try {
    return NetworkNamespace.create();
  } catch (error) {
    throw new ToolUnavailable("a network namespace", (error as Error).message);
  }
}

const interfaces = (): readonly string[] =>
  readFileSync("/proc/thread-self/net/dev", "utf8")
    .split("\n")
    .slice(2)
    .flatMap((line) => line.split(":")[0]?.trim() || []);

test("sockets, files of the kernel and programs that are made within a network are of it", async (t) => {
  using network = create();
  const before = interfaces();
  assert.deepEqual(network.within(interfaces), ["lo"]);
  const up = await network.within(() => runCommand("ip", ["link", "set", "lo", "up"]));
  assert.equal(up.code, 0, up.stderr);
  const server = createServer((socket) => socket.end("of the network"));
  // Without a host, or looking it up would be a wait.
  network.within(() => server.listen(0));
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [said] = (await once(network.connect({ host: "127.0.0.1", port }), "data")) as [Buffer];
  assert.equal(said.toString(), "of the network");
  using home = NetworkNamespace.current();
  const [error] = (await once(home.connect({ host: "127.0.0.1", port }), "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNREFUSED");
  assert.deepEqual(interfaces(), before);
});

test("another process enters it by its path, and what is thrown within leaves this process where it was", async () => {
  using network = create();
  const before = interfaces();
  const entered = await runCommand("nsenter", [`--net=${network.path}`, "--", "cat", "/proc/self/net/dev"]);
  assert.doesNotMatch(entered.stdout, /eth|ens|enp/, entered.stderr);
  assert.match(entered.stdout, /lo:/);
  assert.throws(() => network.within(() => assert.fail("it")), /it/);
  assert.deepEqual(interfaces(), before);
});
