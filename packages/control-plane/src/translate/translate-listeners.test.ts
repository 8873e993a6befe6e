// Ports of the machine that a proxy binds itself, beside the port of its pod.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { InboundPort, SidecarOwn } from "../scope/proxy-view.ts";
import { translateInboundListener } from "./translate-listeners.ts";

const port: InboundPort = {
  targetPort: 8000,
  protocol: "http",
  servicePort: 80,
  service: { name: "hello", namespace: "mine", hostname: "hello.mine.svc.cluster.local" },
};
const own: SidecarOwn = {
  type: "sidecar",
  address: "127.0.1.2",
  appAddress: "127.0.1.3",
  interceptionMode: "NONE",
  inbound: [port],
  publishedPorts: [
    { address: "127.0.0.1", port: 8090, targetPort: 8000 },
    { address: "127.0.0.1", port: 8091, targetPort: 9000 },
  ],
};

test("the inbound listener also has the published ports that lead to its own", () => {
  const bound = translateInboundListener(own, port).additionalAddresses.map(({ address }) => address?.address);
  assert.deepEqual(
    bound.map((address) => address?.case === "socketAddress" && [address.value.address, address.value.portSpecifier]),
    [["127.0.0.1", { case: "portValue", value: 8090 }]],
  );
});
