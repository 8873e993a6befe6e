// A process group's listening sockets, as people write addresses.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { groupListeners } from "./group-listeners.ts";

const program = `
const { createServer } = require("node:net");
const hosts = ["127.0.0.1", "127.9.8.7", "0.0.0.0"];
let left = hosts.length;
const ports = [];
hosts.forEach((host) => {
  const server = createServer().listen(0, host, () => {
    ports.push(host + ":" + server.address().port);
    if (--left === 0) console.log(JSON.stringify(ports));
  });
});
`;

test("all sockets of a group that listen are found, and those of others are not", async (t) => {
  const child = spawn("/bin/sh", ["-c", `"$0" -e '${program}'; true`, process.execPath], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => process.kill(-child.pid!, "SIGKILL"));
  const [text] = (await once(child.stdout, "data")) as [Buffer];
  const expected = JSON.parse(text.toString()) as string[];
  assert.deepEqual(groupListeners(child.pid!).toSorted(), expected.toSorted());
});

test("a group that is not there listens nowhere", () => {
  assert.deepEqual(groupListeners(2 ** 30), []);
});
