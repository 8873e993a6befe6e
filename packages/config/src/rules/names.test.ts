/** Small readings of names: near names, protocols of ports, findings as text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding } from "../findings/finding.ts";
import { editDistance, nearestName } from "../findings/nearest-name.ts";
import { formatPath, jsonPointer } from "../findings/places.ts";
import { isHttp, portProtocol } from "./port-protocol.ts";
import type { PortProtocol } from "./port-protocol.ts";
import { renderFinding, sortFindings } from "../findings/render-finding.ts";
import type { ServicePort } from "../kinds/resource.ts";

test("nearestName", () => {
  const names = ["VirtualService", "retryOn", "perTryTimeout", "hosts", "http"];
  const cases: Readonly<Record<string, string | undefined>> = {
    VirtualServce: "VirtualService",
    virtual_service: "VirtualService",
    "per-try-timeout": "perTryTimeout",
    retryon: "retryOn",
    hsots: "hosts",
    host: "hosts",
    htp: "http",
    tls: undefined,
    abc: undefined,
    "": undefined,
  };
  for (const [name, expected] of Object.entries(cases)) assert.equal(nearestName(name, names), expected, name);
  assert.equal(nearestName("x".repeat(10_000), names), undefined);
});

test("editDistance", () => {
  const cases: readonly (readonly [a: string, b: string, distance: number])[] = [
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "acb", 1],
    ["abc", "abd", 1],
    ["kitten", "sitting", 3],
  ];
  for (const [a, b, distance] of cases) {
    assert.equal(editDistance(a, b), distance, `${a} ${b}`);
    assert.equal(editDistance(b, a), distance, `${b} ${a}`);
  }
});

test("portProtocol", () => {
  const cases: readonly {
    readonly port: Partial<ServicePort>;
    readonly expected: PortProtocol;
    readonly http: boolean;
  }[] = [
    { port: { name: "http" }, expected: "http", http: true },
    { port: { name: "HTTP-web" }, expected: "http", http: true },
    { port: { name: "http2-web" }, expected: "http2", http: true },
    { port: { name: "https" }, expected: "https", http: false },
    { port: { name: "grpc-web" }, expected: "grpc-web", http: true },
    { port: { name: "grpc-x" }, expected: "grpc", http: true },
    { port: { name: "httpx" }, expected: "auto", http: true },
    { port: {}, expected: "auto", http: true },
    { port: { name: "http", appProtocol: "tcp" }, expected: "tcp", http: false },
    { port: { appProtocol: "kubernetes.io/h2c" }, expected: "http2", http: true },
    { port: { name: "http", appProtocol: "example.com/own" }, expected: "auto", http: true },
    { port: { name: "http", protocol: "UDP" }, expected: "udp", http: false },
  ];
  for (const { port, expected, http } of cases) {
    const protocol = portProtocol({ protocol: "TCP", ...port });
    assert.equal(protocol, expected, JSON.stringify(port));
    assert.equal(isHttp(protocol), http, protocol);
  }
});

test("paths", () => {
  assert.equal(formatPath(["spec", "http", 0, "headers", "x-a", "exact"]), 'spec.http[0].headers["x-a"].exact');
  assert.equal(jsonPointer(["a/b", "c~d", 0]), "/a~1b/c~0d/0");
});

const finding: Finding = {
  code: "IST0101",
  severity: "error",
  message: 'host "nowhere" not found',
  resource: { kind: "VirtualService", namespace: "shop", name: "catalog" },
  place: { file: "rules/02.yaml", line: 12, column: 7 },
  suggestion: 'Did you mean "now-here"?',
};

test("a finding in one line, and its severity in a colour", () => {
  assert.equal(
    renderFinding(finding),
    'Error [IST0101] (VirtualService shop/catalog rules/02.yaml:12:7) host "nowhere" not found\n  Did you mean "now-here"?',
  );
  assert.ok(renderFinding(finding, (severity, label) => `<${severity}>${label}</>`).startsWith("<error>Error</> ["));
});

test("errors come first, then by place", () => {
  const at = (severity: Finding["severity"], line: number): Finding => ({
    ...finding,
    severity,
    place: { file: "a", line, column: 1 },
  });
  const sorted = sortFindings([at("info", 1), at("error", 9), at("warning", 2), at("error", 3)]);
  assert.deepEqual(
    sorted.map(({ severity, place }) => `${severity} ${place?.line}`),
    ["error 3", "error 9", "warning 2", "info 1"],
  );
});
