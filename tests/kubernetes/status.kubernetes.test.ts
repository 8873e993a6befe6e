// What a resource of a cluster tells of itself: that it is accepted, what is found in it, and that another one counts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { customResourceDefinitions } from "@tulle/kubernetes";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { startTulled } from "../tools/cluster/tulled.ts";
import { waitFor } from "../tools/processes.ts";

const namespace = "status-a";
const namespaceObject = (name: string): object => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

before(async () => {
  await applyObjects([...customResourceDefinitions(), namespaceObject("tulle-system"), namespaceObject(namespace)]);
  await kubectl(["wait", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--for=condition=Established"]);
});
after(async () => {
  await deleteNamespace(namespace);
  // Others make it anew.
  await kubectl(["delete", "namespace", "tulle-system"]);
});

const route = (name: string, group = "tulle.io"): object => ({
  apiVersion: `networking.${group}/v1`,
  kind: "VirtualService",
  metadata: { name, namespace },
  spec: { hosts: [name], http: [{ route: [{ destination: { host: name } }] }] },
});

interface Shown {
  readonly metadata: { readonly resourceVersion: string; readonly generation: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
    readonly validationMessages?: readonly { readonly type: { readonly code: string } }[];
  };
}

async function shown(name: string, group = "tulle.io"): Promise<Shown> {
  const args = ["get", `virtualservices.networking.${group}`, name, "-n", namespace, "-o", "json"];
  return JSON.parse(await kubectl(args)) as Shown;
}

const acceptedAs = (status: string, name: string, group?: string) => async () => {
  const object = await shown(name, group);
  return object.status?.conditions?.some((each) => each.type === "Accepted" && each.status === status) && object;
};

test("a resource tells what has become of it, and is not written again", async (t) => {
  const tulled = await startTulled(t, { name: "one" });
  await tulled.leads();
  await applyObjects([route("catalog")]);
  const first = await waitFor(acceptedAs("True", "catalog"), { what: "it to be accepted" });
  const codes = (object: Shown) => object.status?.validationMessages?.map(({ type }) => type.code);
  assert.deepEqual(codes(first), ["IST0101"]);
  assert.equal(first.status?.observedGeneration, first.metadata.generation);
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "catalog", namespace },
    spec: { selector: { app: "catalog" }, ports: [{ name: "http", port: 80 }] },
  };
  await applyObjects([service]);
  const settled = async () => {
    const object = await shown("catalog");
    return codes(object) === undefined && object;
  };
  const second = await waitFor(settled, { what: "the finding to go" });
  // Nothing has changed for it: another one's status comes, and another one leads.
  await applyObjects([route("other")]);
  await waitFor(acceptedAs("True", "other"), { what: "the other one's status" });
  await tulled.process.stop();
  const next = await startTulled(t, { name: "two" });
  await next.leads();
  await applyObjects([route("third")]);
  await waitFor(acceptedAs("True", "third"), { what: "the third one's status" });
  assert.equal((await shown("catalog")).metadata.resourceVersion, second.metadata.resourceVersion);
});

test("of two groups that hold one name Tulle's counts, and the other one is told so until it does", async (t) => {
  const tulled = await startTulled(t, { name: "one", args: ["--istio-resources"] });
  await tulled.leads();
  await applyObjects([route("twice")]);
  await waitFor(acceptedAs("True", "twice"), { what: "the first to be accepted" });
  // Istio's kinds come later.
  const theirs = customResourceDefinitions("istio.io").filter(({ metadata }) =>
    metadata.name.startsWith("virtualservices."),
  );
  const name = "virtualservices.networking.istio.io";
  t.after(() => kubectl(["delete", "crd", name]));
  await applyObjects(theirs);
  await kubectl(["wait", "crd", name, "--for=condition=Established"]);
  await applyObjects([route("twice", "istio.io")]);
  const shadowed = await waitFor(acceptedAs("False", "twice", "istio.io"), { what: "the other one to be told" });
  assert.equal(shadowed.status?.conditions?.[0]?.reason, "Shadowed");
  await kubectl(["delete", "virtualservices.networking.tulle.io", "twice", "-n", namespace]);
  await waitFor(acceptedAs("True", "twice", "istio.io"), { what: "the other one to count" });
});
