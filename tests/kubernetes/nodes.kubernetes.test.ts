// Two nodes in two zones: a proxy sends to the endpoints of its own zone where those that fail are noticed, and to
// those farther away when no near one is left.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import path from "node:path";
import { nodes } from "../tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";
import { waitFor } from "../tools/processes.ts";
import { lastLines, runCommand } from "../tools/run-command.ts";

const program = path.resolve(import.meta.dirname, "../../packages/cli/bin/tulle.mjs");
const namespace = "zones";
const node = "/usr/local/bin/node";

async function tulle(args: readonly string[]): Promise<string> {
  const result = await runCommand(process.execPath, [program, ...args], { timeoutMs: 300_000 });
  assert.equal(result.code, 0, `tulle ${args.join(" ")}: ${lastLines(result)}`);
  return result.stdout;
}

const answers = `require("node:http").createServer((request, response) => response.end(process.env.HOSTNAME))
  .listen(8080, "::")`;

const securityContext = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  runAsUser: 10_001,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
};

const pod = (name: string, app: string, nodeName: string, script: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, labels: { app } },
  spec: {
    nodeName,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "main", image: "tulle/shop-catalog:0.1.0", command: [node, "-e", script], securityContext }],
  },
});

before(() => tulle(["install", "-y"]));
after(async () => {
  await deleteNamespace(namespace);
  await tulle(["uninstall", "--purge", "-y"]);
});

test("requests stay in the zone while it has an endpoint, and go to the other zone when it has none", async () => {
  const [near, far] = nodes;
  await applyObjects([
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels: { "tulle-injection": "enabled" } } },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace },
      spec: { selector: { app: "web" }, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
    },
    {
      apiVersion: "networking.tulle.io/v1",
      kind: "DestinationRule",
      metadata: { name: "web", namespace },
      spec: { host: "web", trafficPolicy: { outlierDetection: { consecutive5xxErrors: 5 } } },
    },
  ]);
  const away = "setInterval(() => undefined, 1e6)";
  await applyObjects([
    pod("web-near", "web", near.name, answers),
    pod("web-far", "web", far.name, answers),
    pod("client", "client", near.name, away),
  ]);
  for (const name of ["web-near", "web-far", "client"]) {
    await kubectl(["wait", "-n", namespace, `pod/${name}`, "--for=condition=Ready", "--timeout=120s"]);
  }
  const asking = `(async () => {
    const seen = [];
    for (let index = 0; index < 20; index += 1) seen.push(await (await fetch("http://web.${namespace}/")).text());
    console.log([...new Set(seen)].sort().join());
  })()`;
  const seen = async (): Promise<string> => {
    const exec = ["exec", "-n", namespace, "client", "-c", "main", "--", node, "-e", asking];
    return (await kubectl(exec).catch((error: Error) => error.message)).trim();
  };
  await waitFor(async () => (await seen()) === "web-near", { what: "requests to stay", intervalMs: 500 });
  await kubectl(["delete", "pod", "web-near", "-n", namespace]);
  await waitFor(async () => (await seen()) === "web-far", { what: "the other zone to answer", intervalMs: 500 });
});
