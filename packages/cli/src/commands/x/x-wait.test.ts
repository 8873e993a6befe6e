// x wait as a person types it, against a real control plane with a proxy that acknowledges, refuses, or says nothing.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { connectAds, type Verdict } from "@tulle/xds";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { messageFromJson } from "@tulle/xds/json";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import { type Shell, startShell } from "../../testing/shell.ts";

const service = `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { selector: { app: web }, ports: [{ name: http, port: 80 }] }
`;

type Manner = "acknowledges" | "refuses" | "says nothing";

async function withProxy(t: TestContext, manner: Manner): Promise<Shell> {
  const shell = await startShell(t);
  let received = 0;
  const answer = (names: Iterable<string>): Verdict | Promise<Verdict> => {
    received += 1;
    if (manner === "says nothing") return new Promise(() => {});
    return manner === "refuses" ? [...names].map((name) => ({ name, message: "no" })) : [];
  };
  const node = messageFromJson(NodeSchema, {
    id: "sidecar~127.1.0.9~web-1.shop~shop.svc.cluster.local",
    metadata: { INTERCEPTION_MODE: "NONE" },
  });
  assert.ok(node.ok);
  const client = connectAds({
    target: `http://${shell.instance!.xdsAddress}`,
    node: node.message,
    handlers: { onResponse: ({ resources }) => answer(resources.keys()) },
  });
  t.after(() => client.close());
  client.subscribe("CDS", "*");
  await waitFor(() => received > 0, { what: "the first clusters" });
  return shell;
}

const cases: readonly { manner: Manner; line: string; exitCode: number; output: RegExp }[] = [
  { manner: "acknowledges", line: "x wait", exitCode: 0, output: /^1 proxy has the newest configuration\n$/ },
  { manner: "refuses", line: "x wait", exitCode: 1, output: /refused by web-1\.shop\n.*proxy-status/ },
  {
    manner: "says nothing",
    line: "x wait --timeout 1",
    exitCode: 1,
    output: /still behind after 1 s: web-1\.shop/,
  },
];

for (const { manner, line, exitCode, output } of cases) {
  test(`${line} beside a proxy that ${manner}`, async (t) => {
    const shell = await withProxy(t, manner);
    const applied = await shell.run("apply -f -", service);
    assert.equal(applied.exitCode, 0, applied.stderr);
    const ran = await shell.run(line);
    assert.equal(ran.exitCode, exitCode, ran.stderr);
    assert.match(ran.stdout + ran.stderr, output);
  });
}
