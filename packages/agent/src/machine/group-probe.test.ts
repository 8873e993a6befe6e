// Probes of a WorkloadGroup that a machine's agent asks itself: programs, and gRPC's health service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import type { MachineProbe } from "@tulle/xds";
import { groupCheck } from "./group-probe.ts";

async function verdictOf(probe: MachineProbe): Promise<readonly [isWell: boolean, why: string]> {
  let told = "";
  const isWell = await groupCheck(probe, "127.0.0.1")((why) => (told = why));
  return [typeof isWell === "object" ? false : isWell, told];
}

const programs = [
  { command: ["true"], expected: [true, ""] },
  { command: ["sh", "-c", "exit 3"], expected: [false, "sh ended with 3"] },
  { command: ["sleep", "infinity"], expected: [false, "sleep ended with SIGKILL"] },
  { command: ["/no/such/program"], expected: [false, "/no/such/program: spawn /no/such/program ENOENT"] },
  { command: [], expected: [false, ": The argument 'file' cannot be empty. Received ''"] },
] as const;
for (const { command, expected } of programs) {
  test(`the program ${JSON.stringify(command)} says ${expected[0]}`, async () =>
    assert.deepEqual(await verdictOf({ exec: { command }, timeoutSeconds: 1 }), expected));
}

/** gRPC's health service, which answers with these bytes, or with a status alone; what it was asked. */
async function healthService(t: TestContext, answer: Buffer | undefined) {
  const asked: Buffer[] = [];
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      asked.push(Buffer.from(String(headers[":path"])), Buffer.concat(chunks).subarray(5));
      const head = { ":status": 200, "content-type": "application/grpc" };
      if (answer === undefined) {
        stream.respond({ ...head, "grpc-status": "12", "grpc-message": "unknown service" }, { endStream: true });
        return;
      }
      stream.respond(head, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, answer.length]), answer]));
    });
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

const services = [
  { name: "serves", answer: Buffer.from([8, 1]), expected: /^true $/ },
  { name: "does not serve", answer: Buffer.from([8, 2]), expected: /^false the program says that it does not serve$/ },
  { name: "does not know", answer: Buffer.alloc(0), expected: /^false the program says that it does not serve$/ },
  { name: "has no health service", answer: undefined, expected: /^false .*unknown service/ },
];
for (const { name, answer, expected } of services) {
  test(`a program of gRPC that ${name}`, async (t) => {
    const { port, asked } = await healthService(t, answer);
    const [isWell, why] = await verdictOf({ grpc: { port, service: "ledger" }, timeoutSeconds: 20 });
    assert.match(`${isWell} ${why}`, expected);
    assert.deepEqual(asked.map(String), ["/grpc.health.v1.Health/Check", "\n\u0006ledger"]);
  });
}

test("a program of gRPC that is not there", async () => {
  const [isWell] = await verdictOf({ grpc: { port: 1 }, timeoutSeconds: 20 });
  assert.equal(isWell, false);
});
