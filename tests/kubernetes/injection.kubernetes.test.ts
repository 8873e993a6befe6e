// Injected pods on a real API server: every case of the golden table is taken, those of the CNI plug-in under the
// `restricted` Pod Security level; the webhook's patch makes there what it makes here; and `tulle inject` writes what
// kubectl takes.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test } from "node:test";
import { customResourceDefinitions, type Pod } from "@tulle/kubernetes";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
import { type CasePod, injectedCase, podOf } from "../injection/golden-injection.ts";
import { injectionCases } from "../injection/injection-cases.ts";

const namespace = "shop";
const restricted = "restricted-shop";
const root = path.resolve(import.meta.dirname, "../..");
const tulle = path.join(root, "packages/cli/src/main.ts");

before(async () => {
  const definitions = customResourceDefinitions();
  await applyObjects(definitions);
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await kubectl(["wait", ...names, "--for=condition=Established", "--timeout=60s"]);
  await applyObjects([
    ...[namespace, "tulle-system"].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: restricted, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    },
  ]);
});
after(() => Promise.all([namespace, restricted].map(deleteNamespace)));

async function dryRun(items: readonly object[]): Promise<readonly Taken[]> {
  const folder = temporaryFolder("tulle-injection-");
  const file = path.join(folder, "items.json");
  await writeFile(file, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  return dryRunFile(file);
}

interface Taken {
  readonly metadata: { readonly name: string };
}

async function dryRunFile(file: string): Promise<readonly Taken[]> {
  const output = await kubectl(["apply", "--dry-run=server", "--validate=strict", "-o", "json", "-f", file]);
  const taken = JSON.parse(output) as Taken | { readonly items: readonly Taken[] };
  return "items" in taken ? taken.items : [taken];
}

test("the API server takes every injected pod of the golden table", async () => {
  const pods = injectionCases.map((input) => {
    const { pod } = injectedCase(input);
    return { ...pod, metadata: { ...pod.metadata, name: input.name, namespace } };
  });
  const taken = await dryRun(pods);
  assert.deepEqual(taken.map(({ metadata }) => metadata.name).sort(), injectionCases.map(({ name }) => name).sort());
});

test("beside the CNI plug-in pods are taken under the restricted level, and without it they are not", async () => {
  const inRestricted = (name: string): object => {
    const { pod } = injectedCase(injectionCases.find((each) => each.name === name)!);
    return { ...pod, metadata: { ...pod.metadata, name, namespace: restricted } };
  };
  const names = injectionCases.filter(({ values }) => values?.cni === true).map(({ name }) => name);
  assert.ok(names.length >= 3);
  await dryRun(names.map(inRestricted));
  await assert.rejects(dryRun([inRestricted("as-no-root")]), /violates PodSecurity "restricted/);
});

test("the API server makes of the patch what is made here", async () => {
  const named = ["plain", "probes-by-tcp-and-grpc", "container-of-its-own", "gateway", "metrics", "init-containers"];
  for (const input of injectionCases.filter(({ name }) => named.includes(name))) {
    const plain = podOf(input);
    const labels = { ...(plain.metadata["labels"] as object | undefined), patched: "yes" };
    const deployment = (name: string, { metadata, spec }: Pick<Pod, "metadata" | "spec">): object => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace },
      spec: { replicas: 0, selector: { matchLabels: { patched: "yes" } }, template: { metadata, spec } },
    });
    await applyObjects([
      deployment(input.name, { metadata: { ...plain.metadata, labels }, spec: plain.spec } as unknown as Pod),
    ]);
    // As a webhook gets it: with the API server's own defaults.
    const stored = JSON.parse(
      await kubectl(["get", "deployment", input.name, "-n", namespace, "-o", "json"]),
    ) as unknown;
    const { patch, pod } = injectedCase(input, templateOf(stored) as CasePod);
    const [expected] = await dryRun([deployment("expected", pod)]);
    const operations = patch.map((operation) => ({ ...operation, path: `/spec/template${operation.path}` }));
    const patched = JSON.parse(
      await kubectl([
        "patch",
        "deployment",
        input.name,
        `--namespace=${namespace}`,
        "--type=json",
        "--dry-run=server",
        "--output=json",
        `--patch=${JSON.stringify(operations)}`,
      ]),
    ) as unknown;
    assert.deepEqual(templateOf(patched), templateOf(expected), input.name);
  }
});

function templateOf(deployment: unknown): unknown {
  return (deployment as { spec: { template: unknown } }).spec.template;
}

test("kubectl takes what tulle inject makes of the shop's manifests", async () => {
  const folder = temporaryFolder("tulle-injection-");
  const shop = path.join(root, "samples/shop");
  const args = [tulle, "inject", "-f", shop, "-o", folder];
  const made = await runCommand(process.execPath, args, { timeoutMs: 120_000 });
  assert.equal(made.code, 0, made.stderr);
  const taken = await dryRunFile(folder);
  const deployments = taken.filter((each) => "kind" in each && each.kind === "Deployment");
  assert.ok(deployments.length >= 5);
  for (const each of deployments)
    assert.match(JSON.stringify(each), /"name":"(?:tulle|istio)-proxy"/, each.metadata.name);
});
