// A machine outside of the cluster, in a network of its own beside the nodes: it joins by one command, pods call it
// and it calls pods over mutual TLS, and two replicas of the control plane know it, whichever it has come to.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import type { MachinesResponse } from "@tulle/config/api";
import { nodes } from "../tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { NetworkNamespace } from "../tools/network-namespace.ts";
import { startProcess, type StartedProcess, waitFor } from "../tools/processes.ts";
import { lastLines, runCommand } from "../tools/run-command.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";

const program = path.resolve(import.meta.dirname, "../../packages/cli/bin/tulle.mjs");
const namespace = "machines";
const root = "tulle-system";
const address = "10.10.0.50";
const machineName = "machine";
const values =
  "tulled.machines.enabled=true,tulled.machines.service.type=NodePort,tulled.machines.service.externalTrafficPolicy=Cluster";

async function tulle(args: readonly string[], expected = 0): Promise<string> {
  const result = await runCommand(process.execPath, [program, ...args], { timeoutMs: 300_000 });
  assert.equal(result.code, expected, `tulle ${args.join(" ")}: ${lastLines(result)}`);
  return expected === 0 ? result.stdout : result.stderr;
}

const image = "tulle/shop-catalog:0.1.0";
const node = "/usr/local/bin/node";
/** Tells as whom its callers have come. */
const tellsCaller = (port: number, host: string): string => `
  require("node:http").createServer((request, response) => {
    response.end(JSON.stringify({ xfcc: request.headers["x-forwarded-client-cert"] ?? "nobody" }));
  }).listen(${port}, ${JSON.stringify(host)}, () => console.log("listens"));
`;

const objects: readonly object[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels: { "tulle-injection": "enabled" } } },
  {
    apiVersion: "security.tulle.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "default", namespace },
    spec: { mtls: { mode: "STRICT" } },
  },
  {
    apiVersion: "networking.tulle.io/v1",
    kind: "WorkloadGroup",
    metadata: { name: "ledger", namespace },
    spec: {
      metadata: { labels: { app: "ledger" } },
      template: { serviceAccount: "ledger", ports: { http: 9080 } },
      probe: { periodSeconds: 1, failureThreshold: 1, httpGet: { port: 9080 } },
    },
  },
  ...["ledger", "web"].map((name) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, namespace },
    spec: { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: 9080 }] },
  })),
  { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "web", namespace } },
];

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace, labels: { app: "web" } },
  spec: {
    serviceAccountName: "web",
    containers: [
      {
        name: "main",
        image,
        command: [node, "-e", tellsCaller(9080, "::")],
        securityContext: {
          allowPrivilegeEscalation: false,
          runAsNonRoot: true,
          runAsUser: 10_001,
          capabilities: { drop: ["ALL"] },
          seccompProfile: { type: "RuntimeDefault" },
        },
      },
    ],
  },
};

before(async () => {
  await tulle(["install", "-y", "--set", values]);
  await applyObjects(objects);
});
after(async () => {
  await deleteNamespace(namespace);
  await tulle(["uninstall", "--purge", "-y"]);
});

/** A network that has a way to the nodes and, by these, to pods. */
async function machineNetwork(): Promise<NetworkNamespace> {
  const network = await NetworkNamespace.create();
  const current = NetworkNamespace.current();
  await network.connect(current, "eth0", machineName);
  await current.mustRun("ip", "link", "set", machineName, "master", "wire");
  current[Symbol.dispose]();
  await network.mustRun("ip", "address", "add", `${address}/24`, "dev", "eth0");
  for (const { addresses, podRanges: ranges } of nodes) {
    await network.mustRun("ip", "route", "add", ranges[0], "via", addresses[0]);
  }
  return network;
}

async function joinPort(): Promise<string> {
  const field = "{.spec.ports[0].nodePort}";
  return (await kubectl(["get", "service", "tulled-join", "-n", root, "-o", `jsonpath=${field}`])).trim();
}

const fetching = (url: string, proxy?: string): string => `
  const { request } = require("node:http");
  const target = new URL(${JSON.stringify(url)});
  const by = ${proxy === undefined ? "target" : `new URL(${JSON.stringify(proxy)})`};
  request({ host: by.hostname, port: by.port || 80, path: ${proxy === undefined ? "target.pathname" : "target.href"}, headers: { host: target.host } }, (response) => {
    let text = "";
    response.on("data", (chunk) => (text += chunk)).on("end", () => console.log(response.statusCode + " " + text));
  }).on("error", (error) => { console.error(error.message); process.exit(1); }).end();
`;

async function fromPod(url: string): Promise<string> {
  const exec = ["exec", "-n", namespace, "web", "-c", "main", "--", node, "-e", fetching(url)];
  return kubectl(exec).catch((error: Error) => error.message);
}

async function machines(): Promise<MachinesResponse> {
  return JSON.parse(await tulle(["vm", "list", "--context", "test", "-o", "json"])) as MachinesResponse;
}

test("a machine joins by one command, is reached and reaches pods, and stays while the control plane is rolled", async (t) => {
  using network = await machineNetwork();
  await applyObjects([pod]);
  const refused = await tulle(["vm", "token", "--group", `ledger.${namespace}`, "--context", "test"], 1);
  assert.match(refused, /name it by --control-plane/);
  const port = await joinPort();
  const ways = nodes.flatMap(({ addresses }) => ["--control-plane", `${addresses[0]}:${port}`]);
  const group = ["--group", `ledger.${namespace}`, "--address", address];
  const token = await tulle(["vm", "token", ...group, ...ways, "--context", "test"]);
  const folder = temporaryFolder("tulle-machine-");
  const run = async (name: string, words: readonly string[], env = {}): Promise<StartedProcess> => {
    const [command = "", ...args] = [...network.enter, process.execPath, ...words];
    const started = await startProcess(command, args, { name, env: { KUBECONFIG: undefined, ...env } });
    t.after(() => started.stop());
    return started;
  };
  const ledger = await run("ledger", ["-e", tellsCaller(9080, "127.0.0.1")]);
  await ledger.waitForOutput(/^listens$/m);
  const agent = await run("tulle join", [program, "join", "--state", folder, "--address", address], {
    TULLE_JOIN_TOKEN: token.trim(),
  });
  await kubectl(["wait", "-n", namespace, "pod/web", "--for=condition=Ready", "--timeout=90s"]);
  const isHealthy = async (): Promise<boolean> => {
    const { machines: all } = await machines();
    return all.length === 1 && all[0]!.state === "healthy" && all[0]!.entry === `ledger-${address}`;
  };
  await waitFor(isHealthy, { what: "the machine to be well", details: () => agent.output(), intervalMs: 500 });

  const spiffe = (account: string): RegExp =>
    new RegExp(`^200 .*URI=spiffe://cluster.local/ns/${namespace}/sa/${account}`);
  const reached = async (): Promise<boolean> => spiffe("web").test(await fromPod(`http://ledger.${namespace}/`));
  await waitFor(reached, { what: "the pod to reach the machine", details: () => agent.output(), intervalMs: 500 });
  const reaches = async (): Promise<string> => {
    const script = fetching(`http://web.${namespace}/`, `http://${address}:15007`);
    const { stdout, stderr } = await network.run(process.execPath, "-e", script);
    return stdout + stderr;
  };
  assert.match(await reaches(), spiffe("ledger"));
  // Its proxy takes nobody who shows no certificate, and pods take no machine that shows none.
  const podAddress = await kubectl(["get", "pod", "web", "-n", namespace, "-o", "jsonpath={.status.podIP}"]);
  const plain = await network.run(process.execPath, "-e", fetching(`http://${podAddress}:9080/`));
  assert.notEqual(plain.code, 0, plain.stdout);

  const entryOf = async (): Promise<string> =>
    kubectl([
      "get",
      "workloadentries.networking.tulle.io",
      `ledger-${address}`,
      "-n",
      namespace,
      "-o",
      "jsonpath={.metadata.uid}",
    ]);
  const entry = await entryOf();
  await kubectl(["rollout", "restart", "deployment/tulled", "-n", root]);
  await kubectl(["rollout", "status", "deployment/tulled", "-n", root, "--timeout=150s"]);
  await waitFor(isHealthy, { what: "the machine to be well again", details: () => agent.output(), intervalMs: 500 });
  assert.equal(await entryOf(), entry);
  assert.match(await fromPod(`http://ledger.${namespace}/`), spiffe("web"));
  assert.match(await reaches(), spiffe("ledger"));
  const keeper = ["get", "workloadentries.networking.tulle.io", `ledger-${address}`, "-n", namespace, "-o", "json"];
  const kept = JSON.parse(await kubectl(keeper)) as { metadata: { annotations: Readonly<Record<string, string>> } };
  const replicas = await kubectl(["get", "pods", "-n", root, "-l", "app=tulled", "-o", "name"]);
  assert.ok(replicas.includes(kept.metadata.annotations["networking.tulle.io/keeper"] ?? "none"), replicas);

  const { machines: earlier, tokens } = await machines();
  assert.deepEqual([earlier.length, tokens.map(({ state }) => state)], [1, ["used"]]);
  await tulle(["vm", "remove", `${earlier[0]!.name}.${namespace}`, "--context", "test"]);
  await agent.waitForOutput(/has left the mesh, or was removed/);
  assert.deepEqual((await machines()).machines, []);
  await waitFor(
    async () =>
      !(await kubectl(["get", "workloadentries.networking.tulle.io", "-n", namespace, "-o", "name"])).includes(
        "ledger",
      ),
    {
      what: "its entry to go",
    },
  );
  assert.match(await tulle(["vm", "audit", "--context", "test"]), /joined/);
});
