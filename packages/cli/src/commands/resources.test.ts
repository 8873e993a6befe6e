// apply, get, delete and analyze as a person types them, against a real control plane in this process.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { Shell, startShell } from "../testing/shell.ts";

const service = `apiVersion: v1
kind: Service
metadata: { name: catalog, namespace: shop }
spec: { selector: { app: catalog }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
`;
const rule = `apiVersion: networking.tulle.io/v1
kind: VirtualService
metadata:
  name: catalog
  namespace: shop
spec:
  hosts: [catalog]
  http:
    - route:
        - destination:
            host: catalog
            subset: version-v1
`;
const destinationRule = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: catalog, namespace: shop }
spec: { host: catalog, subsets: [{ name: version-v1, labels: { version: v1 } }] }
`;

test("apply says what it did with each object, in an order that needs no second run", async (t) => {
  const shell = await startShell(t, { "all.yaml": [rule, destinationRule, service].join("---\n") });
  assert.deepEqual(await shell.run("apply -f @all.yaml"), {
    exitCode: 0,
    stdout: "service/catalog created\ndestinationrule/catalog created\nvirtualservice/catalog created\n",
    stderr: "",
  });
  const again = await shell.run("apply -f @all.yaml");
  assert.equal(
    again.stdout,
    "service/catalog unchanged\ndestinationrule/catalog unchanged\nvirtualservice/catalog unchanged\n",
  );
  const changed = await shell.run("apply -f -", rule.replace("subset: version-v1", "port: { number: 80 }"));
  assert.equal(changed.stdout, "virtualservice/catalog configured\n");
});

test("every kind has its place in that order, and deletion goes the other way", async (t) => {
  const secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: db, namespace: shop }\n";
  const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n";
  const shell = await startShell(t, { "all.yaml": [service, secret, namespace].join("---\n") });
  const lines = (stdout: string) => stdout.trim().split("\n");
  const applied = await shell.run("apply -f @all.yaml");
  assert.deepEqual(lines(applied.stdout), ["namespace/shop created", "service/catalog created", "secret/db created"]);
  const deleted = await shell.run("delete -f @all.yaml");
  assert.deepEqual(lines(deleted.stdout), ["secret/db deleted", "service/catalog deleted", "namespace/shop deleted"]);
});

test("a Deployment carries the folder of its manifest, unless that is the instance's own", async (t) => {
  const deployment = (name: string): string => `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: shop }
spec:
  selector: { matchLabels: { app: a } }
  template: { metadata: { labels: { app: a } }, spec: { containers: [{ name: a }] } }
`;
  const shell = await startShell(t, { "own.yaml": deployment("own") });
  await mkdir(path.join(shell.dir, "other"));
  await writeFile(path.join(shell.dir, "other", "other.yaml"), deployment("other"));
  await shell.run("apply -f @own.yaml @other/other.yaml");
  const folderOf = async (name: string): Promise<string | undefined> => {
    const { stdout } = await shell.run(`get deployment ${name} -n shop -o json`);
    const { metadata } = JSON.parse(stdout) as { metadata: { annotations?: Record<string, string> } };
    return metadata.annotations?.["local.tulle.io/folder"];
  };
  assert.equal(await folderOf("own"), undefined);
  assert.equal(await folderOf("other"), "@other");
});

test("apply leaves out what is wrong, applies the rest, and names the places", async (t) => {
  const shell = await startShell(t, {
    "broken.yaml": `${service}---\n${rule.replace("hosts", "hsots")}---\na: "\n`,
    "subset.yaml": rule,
  });
  assert.deepEqual(await shell.run("apply -f @broken.yaml"), {
    exitCode: 4,
    stdout: "service/catalog created\n",
    stderr: `Error [IST0106] (VirtualService shop/catalog @broken.yaml:12:3) unknown field "hsots" in "spec"
  Did you mean "hosts"?
Error [TUL0002] (@broken.yaml:19:4) a quoted text does not end
  Add the closing quote.
`,
  });
  // Fine by itself, and what it refers to may come later: applied, and told.
  assert.deepEqual(await shell.run("apply -f @subset.yaml"), {
    exitCode: 0,
    stdout: "virtualservice/catalog created\n",
    stderr: `Warning [IST0101] (VirtualService shop/catalog @subset.yaml:12:13) subset "version-v1" of host "catalog.shop.svc.cluster.local" not found
  Add a DestinationRule for the host that names the subset.
`,
  });
});

test("apply without anything to apply, without -f, without an instance", async (t) => {
  const shell = await startShell(t, { "empty.yaml": "# nothing\n", "service.yaml": service });
  assert.deepEqual(await shell.run("apply -f @empty.yaml"), {
    exitCode: 4,
    stdout: "",
    stderr: "tulle: there is nothing to apply\n",
  });
  assert.equal((await shell.run("apply")).exitCode, 2);
  assert.equal((await new Shell(shell.dir, undefined).run("apply -f @service.yaml")).exitCode, 3);
  const gone = new Shell(shell.dir, { ...shell.instance!, stateDir: shell.dir });
  const unreachable = await gone.run("apply -f @service.yaml");
  assert.equal(unreachable.exitCode, 3);
  assert.match(unreachable.stderr, /cannot be reached/);
});

test("get shows tables, data and names", async (t) => {
  const shell = await startShell(t, { "all.yaml": [service, destinationRule, rule].join("---\n") });
  await shell.run("apply -f @all.yaml");
  const tables: readonly (readonly [line: string, stdout: string])[] = [
    ["get vs -n shop", "NAME      GATEWAYS   HOSTS\ncatalog   mesh       catalog\n"],
    ["get virtualservices -A", "NAMESPACE   NAME      GATEWAYS   HOSTS\nshop        catalog   mesh       catalog\n"],
    ["get svc catalog -n shop", "NAME      TYPE        PORTS\ncatalog   ClusterIP   80:3000\n"],
    [
      "get svc -n shop -o wide",
      "NAME      TYPE        PORTS     CLUSTER-IP   NODE-PORTS   SELECTOR\n" +
        "catalog   ClusterIP   80:3000   <none>       <none>       app=catalog\n",
    ],
    [
      "get dr,vs -n shop",
      "NAME      HOST      SUBSETS\ncatalog   catalog   version-v1\n\nNAME      GATEWAYS   HOSTS\ncatalog   mesh       catalog\n",
    ],
    ["get dr,vs -n shop -o name", "destinationrule/catalog\nvirtualservice/catalog\n"],
  ];
  for (const [line, stdout] of tables)
    assert.deepEqual(await shell.run(line), { exitCode: 0, stdout, stderr: "" }, line);
  const list = JSON.parse((await shell.run("get vs -A -o json")).stdout) as { kind: string; items: { kind: string }[] };
  assert.equal(list.kind, "List");
  assert.deepEqual(
    list.items.map(({ kind }) => kind),
    ["VirtualService"],
  );
  await shell.run("apply -f -", "{ apiVersion: v1, kind: Namespace, metadata: { name: shop } }");
  const namespace = JSON.parse((await shell.run("get ns shop -o json")).stdout) as { metadata: object };
  assert.deepEqual(Object.keys(namespace.metadata), ["name", "resourceVersion"]);
  assert.equal((await shell.run("get ns")).stdout, "NAME   INJECTION\nshop   <unset>\n");
  // What get prints can be applied again.
  const yaml = (await shell.run("get vs catalog -n shop -o yaml")).stdout;
  assert.equal((await shell.run("apply -f -", yaml)).stdout, "virtualservice/catalog unchanged\n");
});

test("get tells where to look for what is not there", async (t) => {
  const shell = await startShell(t, { "service.yaml": service });
  await shell.run("apply -f @service.yaml");
  const cases: readonly { readonly line: string; readonly exitCode: number; readonly stderr: string }[] = [
    {
      line: "get svc catalog",
      exitCode: 1,
      stderr: 'tulle: service/catalog not found in the namespace "default"\nThere is one in "shop": add -n shop.\n',
    },
    {
      line: "get svc",
      exitCode: 0,
      stderr: 'no services in the namespace "default" (1 elsewhere: -n shop, or -A shows all namespaces)\n',
    },
    { line: "get gw -A", exitCode: 0, stderr: "no gateways\n" },
    { line: "get svc,dr catalog", exitCode: 2, stderr: "tulle: a name goes with one kind and one namespace\n" },
  ];
  for (const { line, ...expected } of cases) {
    const { exitCode, stderr } = await shell.run(line);
    assert.deepEqual({ exitCode, stderr }, expected, line);
  }
  const wrong = await shell.run("get virtualservise");
  assert.equal(wrong.exitCode, 2);
  assert.match(
    wrong.stderr,
    /^tulle: there is no kind "virtualservise"\nDid you mean "virtualservice"\? Kinds: namespaces \(ns\), /,
  );
});

test("delete by name, by kind/name, and what a file lists", async (t) => {
  const shell = await startShell(t, { "all.yaml": [service, destinationRule, rule].join("---\n") });
  await shell.run("apply -f @all.yaml");
  assert.deepEqual(await shell.run("delete vs catalog -n shop"), {
    exitCode: 0,
    stdout: "virtualservice/catalog deleted\n",
    stderr: "",
  });
  assert.deepEqual(await shell.run("delete vs catalog -n shop"), {
    exitCode: 1,
    stdout: "",
    stderr: 'virtualservice/catalog not found in the namespace "shop"\n',
  });
  assert.equal((await shell.run("delete vs catalog -n shop --ignore-not-found")).exitCode, 0);
  assert.equal((await shell.run("delete dr/catalog -n shop")).stdout, "destinationrule/catalog deleted\n");
  await shell.run("apply -f @all.yaml");
  assert.equal(
    (await shell.run("delete -f @all.yaml")).stdout,
    "virtualservice/catalog deleted\ndestinationrule/catalog deleted\nservice/catalog deleted\n",
  );
  for (const line of ["delete", "delete vs", "delete vs catalog -f @all.yaml"]) {
    assert.equal((await shell.run(line)).exitCode, 2, line);
  }
});

test("what a file of the instance says stays, and the rest of a list goes", async (t) => {
  const shell = await startShell(
    t,
    { "mesh/a.yaml": [service, rule].join("---\n"), "all.yaml": [rule, destinationRule].join("---\n") },
    "mesh",
  );
  await shell.run("apply -f @all.yaml");
  const { exitCode, stdout, stderr } = await shell.run("delete -f @all.yaml");
  assert.deepEqual({ exitCode, stdout }, { exitCode: 1, stdout: "destinationrule/catalog deleted\n" });
  assert.match(stderr, /^VirtualService catalog is defined in @mesh\/a\.yaml:\d+: remove it there\n$/);
});

test("analyze checks files alone, files against what runs, and what runs", async (t) => {
  const shell = await startShell(t, { "rule.yaml": rule, "base.yaml": `${service}---\n${destinationRule}` });
  const offline = new Shell(shell.dir, undefined);
  assert.deepEqual(await offline.run("analyze @base.yaml @rule.yaml"), {
    exitCode: 0,
    stdout: "✔ No validation issues found when analyzing @base.yaml, @rule.yaml.\n",
    stderr: "",
  });
  assert.deepEqual(await offline.run("analyze @rule.yaml"), {
    exitCode: 4,
    stdout: `Error [IST0101] (VirtualService shop/catalog @rule.yaml:11:13) host "catalog" not found
  Add a Service "catalog" to the namespace "shop", or write the full name of a service elsewhere.

1 error in @rule.yaml
`,
    stderr: "These files alone were looked at; --mesh adds what runs.\n",
  });
  const json = await offline.run("analyze @rule.yaml -o json");
  assert.equal(json.stderr, "");
  assert.deepEqual(
    (JSON.parse(json.stdout) as { code: string }[]).map(({ code }) => code),
    ["IST0101"],
  );
  await shell.run("apply -f @base.yaml");
  assert.equal((await shell.run("analyze @rule.yaml --mesh")).exitCode, 0);
  assert.equal(
    (await shell.run("analyze")).stdout,
    "✔ No validation issues found when analyzing the running instance.\n",
  );
  const port = service.replace("name: http", "name: udp-x");
  assert.match((await shell.run("analyze - --network-mode loopback", port)).stdout, /^Warning \[TUL0005\]/);
  assert.equal((await shell.run("analyze - --network-mode loopback", port)).exitCode, 0);
  assert.equal((await shell.run("analyze - --network-mode loopback --fail-on warning", port)).exitCode, 4);
});

const podStates: readonly { name: string; status: object; metadata?: object; expected: RegExp }[] = [
  { name: "that runs", status: { phase: "Running" }, expected: /^web +1\/2 +Running +3 +/m },
  {
    name: "whose program ends again and again",
    status: { phase: "Pending", state: { waiting: { reason: "CrashLoopBackOff" } } },
    expected: /^web +1\/2 +CrashLoopBackOff +3 +/m,
  },
  {
    name: "whose program starts",
    status: { phase: "Pending", state: { waiting: { reason: "PodInitializing" } } },
    expected: /^web +1\/2 +PodInitializing +3 +/m,
  },
  {
    name: "that leaves",
    status: { phase: "Running" },
    metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
    expected: /^web +1\/2 +Terminating +3 +/m,
  },
];
for (const { name, status, metadata, expected } of podStates) {
  test(`get shows a pod ${name}, and its age`, async (t) => {
    const shell = await startShell(t);
    const { state, ...rest } = status as { state?: object };
    const containerStatuses = [
      { name: "istio-proxy", ready: true, restartCount: 1 },
      { name: "web", ready: false, restartCount: 2, ...(state === undefined ? {} : { state }) },
    ];
    const creationTimestamp = new Date(Date.now() - 49 * 3_600_000).toISOString();
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", creationTimestamp, ...metadata },
      spec: { containers: [{ name: "web" }] },
      status: { ...rest, containerStatuses },
    };
    const applied = await shell.run("apply -f -", JSON.stringify(pod));
    assert.equal(applied.exitCode, 0, applied.stderr);
    const { stdout } = await shell.run("get pods");
    assert.match(stdout, expected);
    assert.match(stdout, /AGE\n.* 2d1h$/m);
  });
}

test("get shows no value of a Secret, though the API tells its owner", async (t) => {
  const shell = await startShell(t);
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "db" }, data: { password: "c2VzYW1l" } };
  assert.equal((await shell.run("apply -f -", JSON.stringify(secret))).exitCode, 0);
  for (const line of ["get secret db -o yaml", "get secrets -A -o json", "get secrets -o yaml"]) {
    const { stdout } = await shell.run(line);
    assert.doesNotMatch(stdout, /c2VzYW1l/);
    assert.match(stdout, /password"?: *"?\(hidden\)/);
  }
});
