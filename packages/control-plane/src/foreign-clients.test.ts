// gRPC's own client for Python, which takes a stream that ends without a status for one that ended well: whoever is
// turned away has to be told by status and words.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { pythonEnvironment } from "../../../tests/tools/python-environment.ts";
import { runCommand } from "../../../tests/tools/run-command.ts";
import { runManifestControlPlane } from "./run-manifest-control-plane.ts";

/** Opens an ADS stream for each argument after the port, sends those bytes (hexadecimal) and prints how it ends. */
const client = `
import sys, grpc, threading
path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
for message in sys.argv[2:]:
    over = threading.Event()
    def requests():
        yield bytes.fromhex(message)
        over.wait()
    with grpc.insecure_channel("127.0.0.1:" + sys.argv[1]) as channel:
        stream = channel.stream_stream(path, request_serializer=bytes, response_deserializer=bytes)
        call = stream(requests(), timeout=60)
        try:
            for response in call: pass
        except grpc.RpcError: pass
        print(call.code().name, call.details())
        over.set()
`;

test("Python's client hears why it is turned away", async (context) => {
  const python = await pythonEnvironment("python/grpc.txt");
  const stateDirectory = await mkdtemp(path.join(tmpdir(), "foreign-clients-"));
  const running = await runManifestControlPlane({
    stateDirectory,
    xdsAddress: { host: "127.0.0.1", port: 0 },
    httpAddress: { host: "127.0.0.1", port: 0 },
    logging: new Logging({ level: "off" }),
  });
  context.after(async () => {
    await running.close();
    await rm(stateDirectory, { recursive: true });
  });
  // A DiscoveryRequest with a node (field 2) whose id (field 1) is "x"; one without a node; no message at all.
  const messages = ["12030a0178", "", "ffffff"];
  const { stdout } = await runCommand(python, ["-c", client, String(running.xdsAddress!.port), ...messages], {
    timeoutMs: 120_000,
  });
  assert.deepEqual(stdout.trim().split("\n"), [
    'INVALID_ARGUMENT node id "x" is not <type>~<address>~<pod>.<namespace>~<domain>',
    "INVALID_ARGUMENT the first request carries no node id",
    "INVALID_ARGUMENT not a DiscoveryRequest: RangeError: premature EOF",
  ]);
});
