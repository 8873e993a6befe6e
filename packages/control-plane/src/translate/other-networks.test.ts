// Weights of gateways, where the translation's golden files have but one or two of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MeshEndpoint } from "../snapshot/mesh-snapshot.ts";
import { byNetwork } from "./other-networks.ts";

const endpoint: MeshEndpoint = {
  address: "10.9.0.4",
  port: 80,
  labels: {},
  workload: "",
  namespace: "shop",
  network: "second",
  tlsMode: "istio",
};

test("any numbers of gateways have weights that Envoy takes", () => {
  const counts = [2, ...Array.from({ length: 400 }, (_, index) => 2 * index + 3)];
  const gatewaysOf = (count: number) => Array.from({ length: count }, (_, port) => ({ address: "192.0.2.10", port }));
  const gateways = Object.fromEntries(counts.map((count) => [`network-${count}`, gatewaysOf(count)]));
  const second = gatewaysOf(2);
  const found = byNetwork([endpoint], { own: "first", gateways: { ...gateways, second } }, () => true);
  assert.deepEqual(
    found.map(({ weight = 1 }) => weight > 0 && weight <= 0xff_ff_ff_ff && Number.isInteger(weight)),
    [true, true],
  );
});
