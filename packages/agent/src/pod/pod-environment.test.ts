// Variables and files as a kubelet writes them, and the node metadata that comes of them.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { before, test } from "node:test";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { parseSettings } from "../settings.ts";
import { podEnvironment } from "./pod-environment.ts";

let folder: string;
let env: Readonly<Record<string, string>>;

before(async () => {
  folder = temporaryFolder("pod-info-");
  await writeFile(path.join(folder, "labels"), 'app="web"\nversion="v1"\n');
  await writeFile(
    path.join(folder, "annotations"),
    String.raw`kubectl.kubernetes.io/last-applied-configuration="{}"
proxy.istio.io/config="gatewayTopology:\n  numTrustedProxies: 1\n"
sidecar.istio.io/status="{}"
`,
  );
  env = {
    TULLE_POD_INFO: folder,
    POD_NAME: "web-1",
    POD_NAMESPACE: "shop",
    INSTANCE_IP: "10.244.1.7",
    POD_IPS: "10.244.1.7,fd00:244:1::7",
    NODE_NAME: "node1",
    TULLE_XDS_ADDRESS: "tulled.tulle-system.svc:15012",
    TULLE_STATE_DIR: folder,
    ISTIO_META_WORKLOAD_NAME: "web",
    ISTIO_META_INTERCEPTION_MODE: "REDIRECT",
    ISTIO_META_POD_PORTS: '[{"containerPort":80}]',
    ISTIO_METAJSON_MORE: '{"NETWORK":"one"}',
  };
});

test("what the kubelet and the injector write becomes node metadata", () => {
  const parsed = parseSettings(podEnvironment(env));
  assert.ok(parsed.ok);
  assert.deepEqual(parsed.settings.metadata, {
    INSTANCE_IPS: "10.244.1.7,fd00:244:1::7",
    NODE_NAME: "node1",
    LABELS: { app: "web", version: "v1" },
    ANNOTATIONS: { "proxy.istio.io/config": "gatewayTopology:\n  numTrustedProxies: 1\n" },
    WORKLOAD_NAME: "web",
    INTERCEPTION_MODE: "REDIRECT",
    POD_PORTS: '[{"containerPort":80}]',
    NETWORK: "one",
  });
});

test("TULLE_NODE_METADATA comes first, and without the volume nothing changes", () => {
  const metadata = JSON.parse(
    podEnvironment({ ...env, TULLE_NODE_METADATA: '{"WORKLOAD_NAME":"mine"}' })["TULLE_NODE_METADATA"]!,
  ) as Readonly<Record<string, unknown>>;
  assert.equal(metadata["WORKLOAD_NAME"], "mine");
  const { TULLE_POD_INFO: _, ...without } = env;
  assert.equal(podEnvironment(without), without);
});

test("what cannot be read is told by its name", () => {
  assert.throws(
    () => podEnvironment({ ...env, TULLE_POD_INFO: "/nowhere" }),
    /^Error: TULLE_POD_INFO: \/nowhere\/labels/,
  );
  assert.throws(() => podEnvironment({ ...env, ISTIO_METAJSON_A: "[]" }), /^Error: ISTIO_METAJSON_A is no JSON object/);
});
