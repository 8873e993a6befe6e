// Whose socket is believed to be a pod's agent, of real processes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { listeningSocket } from "@tulle/capture";
import { freeAddressBlock, startProcess, type StartedProcess } from "../../../../tests/tools/processes.ts";
import { AgentSockets } from "./agent-sockets.ts";

const nobody = 65_534;
const listens = `
const [, address, uid] = process.argv;
if (uid !== undefined) { process.setgroups([]); process.setgid(Number(uid)); process.setuid(Number(uid)); }
const server = require("node:net").createServer().listen(0, address, () => console.log("port " + server.address().port));
`;

async function listener(address: string, env: Readonly<Record<string, string>>, ...uid: readonly string[]) {
  const started = await startProcess(process.execPath, ["-e", listens, address, ...uid], { name: "a listener", env });
  const [, port] = await started.waitForOutput(/^port (\d+)$/m);
  return { started, socket: listeningSocket({ ip: address, port: Number(port) }) };
}

const rows: readonly {
  readonly name: string;
  readonly env: (address: string) => Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly expected: ((started: StartedProcess) => RegExp) | undefined;
}[] = [
  { name: "the agent of that address", env: (address) => ({ INSTANCE_IP: address }), expected: undefined },
  {
    name: "the agent of another one",
    env: (address) => ({ INSTANCE_IP: `${address}1` }),
    expected: ({ pid }) => new RegExp(`^process ${pid} \\(\\S*node`),
  },
  {
    name: "a program of the pod",
    env: (address) => ({ POD_NAME: "web-1", POD_IP: address }),
    expected: ({ pid }) => new RegExp(`^process ${pid} \\(\\S*node`),
  },
  {
    name: "another user's, whatever its variables say",
    env: (address) => ({ INSTANCE_IP: address }),
    uid: nobody,
    expected: () => new RegExp(` of user \\S+ \\(uid ${nobody}\\)$`),
  },
];

for (const { name, env, uid, expected } of rows) {
  // Only root starts another user's.
  if (uid !== undefined && process.getuid?.() !== 0) continue;
  test(name, async () => {
    const address = `${await freeAddressBlock()}.1`;
    const { started, socket } = await listener(address, env(address), ...(uid === undefined ? [] : [String(uid)]));
    await using _ended = started;
    assert.equal(typeof socket, "object");
    const agents = new AgentSockets();
    // The second time it is remembered.
    for (let time = 0; time < 2; time += 1) {
      const stranger = agents.stranger(address, socket);
      if (expected === undefined) assert.equal(stranger, undefined);
      else assert.match(stranger ?? "", expected(started));
    }
  });
}

test("an agent that listens at all addresses is the agent of its own alone, whichever is asked of first", async () => {
  const block = await freeAddressBlock();
  const [own, other] = [`${block}.1`, `${block}.2`];
  const { started, socket } = await listener("0.0.0.0", { INSTANCE_IP: own });
  await using _ended = started;
  const agents = new AgentSockets();
  for (let time = 0; time < 2; time += 1) {
    assert.match(agents.stranger(other, socket) ?? "", new RegExp(`^process ${started.pid} `));
    assert.equal(agents.stranger(own, socket), undefined);
  }
});

for (const nothing of ["nobody", "unknown"] as const) {
  test(`no socket is nobody's: ${nothing}`, () => {
    assert.equal(new AgentSockets().stranger("127.0.0.1", nothing), undefined);
  });
}
