// Two control planes of two versions side by side, as docs/upgrading.md has it: workloads move over by a namespace's
// label and by tags, and back, under load, and no request fails; either serves the other's proxies; and what the
// cluster has once is written by one of them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { describeFailures, describePace, ShopLoad } from "../e2e/shop-load.ts";
import { nextVersion } from "../tools/cluster/cluster-programs.ts";
import { auditLog } from "../tools/cluster/control-plane-programs.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { tulle } from "../tools/cluster/tulle-command.ts";
import { waitFor } from "../tools/processes.ts";
import { ClusterShop, helm, untilAvailable } from "./cluster-shop.ts";

/** Few: pods start on both nodes beside it. */
const requestsPerSecond = 15;
const version = "0.1.0";
const folder = path.resolve(process.env["KUBECONFIG"]!, "../..");
const chart = path.resolve(import.meta.dirname, "../../charts/tulle");
const inShop = ["catalog-v1", "catalog-v2", "webapp", "productpage", "client", "orders", "oauth2"] as const;
const gateway = "tulle-ingressgateway";
const sampling = '{"defaultConfig":{"tracing":{"sampling":7}}}';

let shop: ClusterShop;
let besideSince: string;

before(async () => {
  await tulle(["uninstall", "--purge", "-y"]);
  const one = ["--revision", "old", "--set", "tulled.replicaCount=1"];
  await tulle(["install", "-y", ...one, "--set", "base.meshConfig.defaultConfig.tracing.sampling=7"]);
  await tulle(["tag", "set", "default", "--revision", "old"]);
  await tulle(["tag", "set", "prod", "--revision", "old"]);
  shop = await ClusterShop.apply();
});
after(async () => {
  await shop?.[Symbol.asyncDispose]();
  await kubectl(["delete", "namespace", "shop", "--ignore-not-found"]);
  await helm(["uninstall", "tulle-next", "-n", "tulle-system", "--ignore-not-found", "--wait"]);
  await tulle(["uninstall", "--purge", "-y"]);
  await kubectl(["delete", "namespace", "tulle-system", "--ignore-not-found"]);
});

async function underLoad(t: TestContext, change: () => Promise<void>): Promise<void> {
  const options = { seed: 20_261_129, requestsPerSecond, maxInFlight: 64, minSeconds: 3, timeoutMs: 30_000 };
  const load = await ShopLoad.begin(shop, options);
  await load.after(requestsPerSecond);
  await change().catch(async (error: unknown) => {
    await load.end();
    throw error;
  });
  await load.after(requestsPerSecond);
  const result = await load.end();
  t.diagnostic(describePace(result));
  assert.equal(result.failed.length, 0, describeFailures(result));
}

async function rollOut(namespace: string, ...names: readonly string[]): Promise<void> {
  const deployments = names.map((name) => `deployment/${name}`);
  await kubectl(["rollout", "restart", "-n", namespace, ...deployments]);
  for (const each of deployments)
    await kubectl(["rollout", "status", "-n", namespace, each, "--timeout=240s"], 260_000);
}

interface Row {
  readonly proxy: string;
  readonly tulled: string;
  readonly istio_version: string;
  readonly types: Readonly<Record<string, { readonly state: string }>>;
}

/** Of each app: its proxy's version, and the revision whose control plane serves it. */
async function served(): Promise<Readonly<Record<string, string>>> {
  const rows = JSON.parse(await tulle(["proxy-status", "--context", "test", "-o", "json"])) as readonly Row[];
  const apps = rows.map(({ proxy, tulled, istio_version: of, types }) => {
    const app = /^(?:\S+?)(?=-[a-z0-9]+-[a-z0-9]{5}\.)/.exec(proxy)?.[0] ?? proxy;
    const revision = /^tulled-(\w+?)-/.exec(tulled)?.[1];
    const wrong = Object.entries(types).filter(([, { state }]) => state === "ERROR" || state === "STALE");
    return [app, [of, revision, ...wrong.map(([type, { state }]) => `${type} ${state}`)].join(" ")] as const;
  });
  return Object.fromEntries(apps);
}

const all = [...inShop, gateway];
const servedAs = (what: string, names: readonly string[] = all): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, what]));

/** Pods that end are still there for a while. */
async function servedBecomes(expected: Readonly<Record<string, string>>): Promise<void> {
  let last: object = {};
  await waitFor(async () => isDeepStrictEqual((last = await served()), expected), {
    what: `the status to be ${JSON.stringify(expected)}`,
    details: () => JSON.stringify(last),
  });
}

test("a second revision comes beside the first, and changes nothing for its proxies", async (t) => {
  besideSince = new Date().toISOString();
  await underLoad(t, async () => {
    const values = `base.enabled=false,tulled.revision=next,tulled.replicaCount=1,global.tag=${nextVersion}`;
    await helm(["install", "tulle-next", chart, "-n", "tulle-system", "--wait", "--timeout", "3m", "--set", values]);
  });
  await servedBecomes(servedAs(`${version} old`));
  // By the command line a revision that says nothing of the mesh's configuration leaves it, too.
  const one = ["--revision", "old", "--set", "tulled.replicaCount=1"];
  assert.match(await tulle(["upgrade", "-y", ...one]), /The mesh configuration stays as it is/);
  const meshConfig = await kubectl(["get", "configmap", "tulle", "-n", "tulle-system", "-o", "jsonpath={.data.mesh}"]);
  assert.deepEqual(JSON.parse(meshConfig), JSON.parse(sampling));
});

test("workloads move over by their namespace's label, some before the others", async (t) => {
  await kubectl(["label", "namespace", "shop", "tulle-injection-", "tulle.io/rev=next"]);
  await underLoad(t, () => rollOut("shop", "catalog-v1", "webapp"));
  await servedBecomes({ ...servedAs(`${version} old`), ...servedAs(`${nextVersion} next`, ["catalog-v1", "webapp"]) });
  const listed = await tulle(["proxy-status", "--context", "test"]);
  for (const each of [version, nextVersion]) assert.match(listed, new RegExp(`${each.replaceAll(".", "\\.")}$`, "m"));
});

test("tags move the others, and the gateway", async (t) => {
  await kubectl(["label", "namespace", "shop", "--overwrite", "tulle.io/rev=prod"]);
  await tulle(["tag", "set", "prod", "--revision", "next"]);
  await tulle(["tag", "set", "default", "--revision", "next"]);
  const rest = inShop.filter((name) => name !== "catalog-v1" && name !== "webapp");
  await underLoad(t, async () => {
    await rollOut("shop", ...rest);
    await rollOut("tulle-system", gateway);
  });
  await servedBecomes(servedAs(`${nextVersion} next`));
});

test("and back", async (t) => {
  await tulle(["tag", "set", "prod", "--revision", "old"]);
  await tulle(["tag", "set", "default", "--revision", "old"]);
  await underLoad(t, async () => {
    await rollOut("shop", ...inShop);
    await rollOut("tulle-system", gateway);
  });
  await servedBecomes(servedAs(`${version} old`));
});

interface Event {
  readonly requestReceivedTimestamp: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string };
}

test("meanwhile one of both has written what the cluster has once, and each its own webhooks", async () => {
  // Something to tell, and a namespace to write roots into.
  await kubectl(["create", "namespace", "once"]);
  const rule = {
    apiVersion: "networking.tulle.io/v1",
    kind: "DestinationRule",
    metadata: { name: "once", namespace: "once" },
    spec: { host: "once" },
  };
  const accepted = [
    "get",
    "destinationrules.networking.tulle.io",
    "once",
    "-n",
    "once",
    "-o",
    "jsonpath={.status.conditions}",
  ];
  await applyObjects([rule]);
  await waitFor(async () => (await kubectl(accepted)).includes('"Accepted"'), { what: "it to be told" });
  await kubectl(["delete", "namespace", "once", "--wait=false"]);
  const events = (await readFile(auditLog(folder), "utf8"))
    .split("\n")
    .filter((line) => line.includes("serviceaccount:tulle-system:tulled"))
    .map((line) => JSON.parse(line) as Event)
    .filter(({ requestReceivedTimestamp: at, verb }) => at > besideSince && verb === "patch");
  const writersOf = (isMeant: (object: NonNullable<Event["objectRef"]>) => boolean): readonly string[] => [
    ...new Set(
      events
        .filter(({ objectRef }) => objectRef !== undefined && isMeant(objectRef))
        .map(({ user }) => user.username.split(":").at(-1)!),
    ),
  ];
  assert.equal(writersOf(({ subresource }) => subresource === "status").length, 1);
  assert.equal(writersOf(({ resource, name }) => resource === "configmaps" && name === "tulle-ca-root-cert").length, 1);
  for (const revision of ["old", "next"]) {
    const writers = writersOf(({ name }) => name === `tulle-sidecar-injector-${revision}`);
    assert.deepEqual(
      writers.filter((writer) => writer !== `tulled-${revision}`),
      [],
    );
  }
});

test("in place, too: either version serves the other's proxies", async (t) => {
  const upgrade = ["upgrade", "-y", "--revision", "old", "--set"];
  await underLoad(t, async () => {
    await tulle([...upgrade, `tulled.replicaCount=1,global.tag=${nextVersion}`]);
    await servedBecomes(servedAs(`${version} old`));
    await rollOut("shop", "catalog-v1");
    await servedBecomes({ ...servedAs(`${version} old`), ...servedAs(`${nextVersion} old`, ["catalog-v1"]) });
    await tulle([...upgrade, `tulled.replicaCount=1,global.tag=${version}`]);
    await servedBecomes({ ...servedAs(`${version} old`), ...servedAs(`${nextVersion} old`, ["catalog-v1"]) });
  });
});

test("a revision goes, and the other leads on", async (t) => {
  await underLoad(t, async () => {
    await helm(["uninstall", "tulle-next", "-n", "tulle-system", "--wait", "--timeout", "2m"]);
    await untilAvailable("tulle-system");
  });
  const holder = ["get", "lease", "tulle-leader", "-n", "tulle-system", "-o", "jsonpath={.spec.holderIdentity}"];
  await waitFor(async () => (await kubectl(holder)).startsWith("tulled-old-"), { what: "the other to lead" });
  await servedBecomes({ ...servedAs(`${version} old`), ...servedAs(`${nextVersion} old`, ["catalog-v1"]) });
});
