// What the store says and what runs stay one, whatever is deleted, written over or killed: it ends where a fresh start ends.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { keyOf } from "@tulle/config";
import { waitFor } from "../tools/processes.ts";
import { helloDeployment, SmallMesh } from "./small-mesh.ts";

describe("a running instance", () => {
  let mesh: SmallMesh;
  before(async () => (mesh = await SmallMesh.start()));
  after(() => mesh[Symbol.asyncDispose]());

  test("replaces a pod that is deleted, which leaves in good order", async () => {
    const [first, second] = await mesh.podRows();
    assert.equal(
      await mesh.tulle("delete", "pod", first!.metadata.name, "-n", "mine"),
      `pod/${first!.metadata.name} deleted\n`,
    );
    await mesh.waitUntilConverged(2);
    const names = (await mesh.podRows()).map(({ metadata }) => metadata.name);
    assert.ok(!names.includes(first!.metadata.name) && names.includes(second!.metadata.name), names.join());
  });

  test("replaces all of its pods when all are deleted", async () => {
    const old = (await mesh.podRows()).map(({ metadata }) => metadata.name);
    await mesh.tulle("delete", "pod", ...old, "-n", "mine");
    await mesh.waitUntilConverged(2);
    assert.deepEqual(
      (await mesh.podRows()).filter(({ metadata }) => old.includes(metadata.name)),
      [],
    );
  });

  test("restarts its pods after that", async () => {
    const old = (await mesh.podRows()).map(({ metadata }) => metadata.name);
    await mesh.tulle("rollout", "restart", "deployment/hello", "-n", "mine");
    await mesh.tulle("rollout", "status", "deployment/hello", "-n", "mine");
    await mesh.waitUntilConverged(2);
    assert.deepEqual(
      (await mesh.podRows()).filter(({ metadata }) => old.includes(metadata.name)),
      [],
    );
  });

  test("tells anew of endpoints and pods that somebody has removed from the store", async () => {
    for (const row of [...(await mesh.sliceRows()), ...(await mesh.podRows())])
      await mesh.api.delete(keyOf(row), { atOnce: true });
    await mesh.waitUntilConverged(2);
  });

  test("takes back what somebody has written over endpoints and pods", async () => {
    const [slice] = await mesh.sliceRows();
    await mesh.api.apply({ ...slice!, endpoints: [] });
    const [row] = await mesh.podRows();
    await mesh.api.apply({ ...row!, status: { ...row!.status, podIP: "127.0.0.77", phase: "Failed" } });
    await waitFor(async () => (await mesh.podRows()).every(({ status }) => status?.phase === "Running"), {
      what: "the pods to be told of as they are",
    });
    await mesh.waitUntilConverged(2);
  });

  test("removes rows of pods that nobody runs", async () => {
    const [row] = await mesh.podRows();
    await mesh.api.apply({ ...row!, metadata: { ...row!.metadata, name: "hello-nobody-runs", uid: "1" } });
    await mesh.waitUntilConverged(2);
  });

  test("ends with no pods, then begins again, by its number of replicas and by its file", async () => {
    const scaled = (replicas: number) => ({ ...helloDeployment, spec: { ...helloDeployment.spec, replicas } });
    await mesh.write(scaled(0));
    await mesh.waitUntilConverged(0);
    await mesh.write(scaled(1));
    await waitFor(async () => (await mesh.podRows()).length === 1, { what: "a pod to start" });
    // Gone while it starts.
    await mesh.write(undefined);
    await mesh.waitUntilConverged(0);
    await mesh.write(helloDeployment);
    await mesh.waitUntilConverged(2);
  });

  test("finds what was deleted while the control plane was away", async () => {
    const [row] = await mesh.podRows();
    await mesh.api.delete(keyOf(row!));
    process.kill((await mesh.processes()).get("control-plane")!, "SIGKILL");
    await mesh.waitUntilConverged(2);
    assert.ok((await mesh.podRows()).every(({ metadata }) => metadata.name !== row!.metadata.name));
  });
});
