// Published ports: what annotations and the command line ask for.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "@tulle/config";
import { parsePortMappings, wantedPorts } from "./published-port-mappings.ts";

const parsed = [
  { text: "8080:8080", expected: [{ hostPort: 8080, targetPort: 8080 }] },
  { text: "10.0.0.5:80:8080", expected: [{ hostPort: 80, targetPort: 8080, hostAddress: "10.0.0.5" }] },
  { text: "[fd00::5]:80:8080", expected: [{ hostPort: 80, targetPort: 8080, hostAddress: "fd00::5" }] },
  {
    text: "80:8080, 443:8443",
    expected: [
      { hostPort: 80, targetPort: 8080 },
      { hostPort: 443, targetPort: 8443 },
    ],
  },
];
for (const { text, expected } of parsed) {
  test(`"${text}" is understood`, () => assert.deepEqual(parsePortMappings(text), expected));
}
for (const text of [
  "",
  "8080",
  "8080:",
  "a:b",
  "0:80",
  "80:70000",
  "localhost:80:80",
  "1.2.3:80:80",
  "[::g]:80:80",
  "80:80,",
]) {
  test(`"${text}" is refused with an example`, () =>
    assert.match(JSON.stringify(parsePortMappings(text)), /such as 8080:8080/));
}

function gateway(annotation: string): Service {
  const metadata = { name: "gw", namespace: "s", annotations: { "local.tulle.io/publish": annotation } };
  return { apiVersion: "v1", kind: "Service", metadata, spec: { type: "ClusterIP", ports: [] } };
}

test("the command line replaces host ports by their target", () => {
  const overrides = [{ hostPort: 8081, targetPort: 8080 }];
  const { ports } = wantedPorts([gateway("8080:8080,8443:8443")], overrides);
  assert.deepEqual(
    ports.map(({ hostPort, targetPort }) => `${hostPort}:${targetPort}`),
    ["8081:8080", "8443:8443"],
  );
});

test("a bad annotation is a problem of that Service alone", () => {
  const { ports, problems } = wantedPorts([gateway("http"), gateway("1:2")], []);
  assert.equal(ports.length, 1);
  assert.match(problems[0]!.message, /local\.tulle\.io\/publish: "http"/);
});
