// What the store says and what runs stay one, whatever is deleted, written over or killed: it ends where a fresh start
// ends.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type ConfigMap, keyOf } from "@tulle/config";
import { waitFor } from "../tools/processes.ts";
import { httpRequest } from "./shop-instance.ts";
import { helloDeployment, SmallMesh } from "./small-mesh.ts";

describe("a running instance", () => {
  let mesh: SmallMesh;
  before(async () => (mesh = await SmallMesh.start()));
  after(() => mesh[Symbol.asyncDispose]());

  test("has pods that are reached within the mesh, though their port is published", async () => {
    const [first] = await mesh.podRows();
    const { name } = first!.metadata;
    const direct = await httpRequest(`http://${first!.status!.podIP}:8000/`);
    assert.deepEqual([direct.status, direct.body], [200, name]);
    const headers = { host: "hello.mine" };
    const byName = await httpRequest(`http://${first!.status!.podIP}:15007/`, { headers });
    assert.deepEqual([byName.status, byName.body.startsWith("hello-")], [200, true], byName.body);
  });

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

  test("holds new pods until their ConfigMap is there, and restarts none for a change of it", async () => {
    const old = (await mesh.podRows()).map(({ metadata }) => metadata.name);
    const { template } = helloDeployment.spec;
    const valueFrom = { configMapKeyRef: { name: "settings", key: "level" } };
    const [hello] = template.spec.containers;
    const containers = [{ ...hello!, env: [{ name: "LEVEL", valueFrom }] }];
    const changed = { ...template, spec: { ...template.spec, containers } };
    await mesh.write({ ...helloDeployment, spec: { ...helloDeployment.spec, template: changed } });
    await waitFor(async () => (await mesh.tulle("get", "pods", "-n", "mine")).includes("CreateContainerConfigError"), {
      what: "a pod that waits",
      details: () => mesh.output,
    });
    assert.match(await mesh.tulle("pods"), /there is no ConfigMap mine\/settings, which the variable LEVEL needs/);
    const ready = (await mesh.podRows()).filter(
      ({ status }) => status?.conditions?.find(({ type }) => type === "Ready")?.status === "True",
    );
    assert.deepEqual(ready.map(({ metadata }) => metadata.name).sort(), old.toSorted());

    const settings = (level: string): ConfigMap => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "settings", namespace: "mine" },
      data: { level },
    });
    await mesh.api.apply(settings("debug"));
    await mesh.waitUntilConverged(2);
    const [first, second] = (await mesh.podRows()).map(({ metadata }) => metadata.name);
    const earlier = await mesh.processes();
    await mesh.api.apply(settings("info"));
    await mesh.tulle("delete", "pod", first!, "-n", "mine");
    await mesh.waitUntilConverged(2);
    const later = await mesh.processes();
    assert.equal(later.get(`${second} app`), earlier.get(`${second} app`));
    const levels = [...later]
      .filter(([name]) => name.endsWith(" app"))
      .map(([name, pid]) => {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        return [name === `${second} app` ? "old" : "new", /(?:^|\0)LEVEL=([^\0]*)/.exec(environment)?.[1]];
      });
    assert.deepEqual(Object.fromEntries(levels), { old: "debug", new: "info" });
    await mesh.write(helloDeployment);
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
