// An installation on a real cluster: it is looked at first, comes up, is asked by the command line, uses each right
// that it has and no other, and leaves nothing behind.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, test } from "node:test";
import { testCertificate } from "../tools/certificates.ts";
import { auditLog } from "../tools/cluster/control-plane-programs.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { tulle } from "../tools/cluster/tulle-command.ts";
import { waitFor } from "../tools/processes.ts";
import { temporaryFolder } from "../tools/temporary-folder.ts";
const folder = path.resolve(process.env["KUBECONFIG"]!, "../..");
const account = "system:serviceaccount:tulle-system:tulled";

/** Names of all that an installation could leave. */
async function everything(): Promise<readonly string[]> {
  const kinds = [
    "namespaces",
    "customresourcedefinitions",
    "clusterroles",
    "clusterrolebindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "configmaps,secrets,leases,deployments,services,serviceaccounts,poddisruptionbudgets",
  ];
  const listed = await Promise.all(kinds.map((kind) => kubectl(["get", kind, "-A", "-o", "name"])));
  return listed
    .flatMap((text) => text.split("\n"))
    .filter((name) => name !== "" && !/^lease.*\/node\d$/.test(name))
    .toSorted();
}

/** Namespaces of tests that have ended go in their own time. */
async function untilOthersAreGone(): Promise<void> {
  const phases = ["get", "namespaces", "-o", "jsonpath={.items[*].status.phase}"];
  await waitFor(async () => !(await kubectl(phases)).includes("Terminating"), {
    what: "other tests' namespaces to go",
  });
}

interface Event {
  readonly requestReceivedTimestamp: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly apiGroup?: string; readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
}

interface Role {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

after(() => tulle(["uninstall", "--purge", "-y"]));

test("it comes up with a gateway, the command line asks it, and afterwards nothing is left", async (t) => {
  await tulle(["uninstall", "--purge", "-y"]);
  await untilOthersAreGone();
  const before = await everything();
  // The log is of all that has run on this cluster.
  const startedAt = new Date().toISOString();
  const values = ["--set", "gateway.enabled=true,gateway.service.type=NodePort,global.networkPolicy.enabled=true"];
  assert.match(await tulle(["precheck", ...values]), /✔ Rights: every object/);
  assert.match(await tulle(["install", "--dry-run", ...values]), /Nothing was changed/);
  assert.deepEqual(await everything(), before);
  assert.match(await tulle(["install", "-y", ...values]), /✔ Tulle is installed/);
  const installed = await everything();
  // A second time nothing is new.
  assert.match(await tulle(["upgrade", "-y", ...values]), /✔ Tulle is upgraded/);

  await t.test("the command line sees its proxy, whichever replica it has come to", async () => {
    assert.match(await tulle(["proxy-status", "--context", "test"]), /tulle-ingressgateway-\S+\.tulle-system .*SYNCED/);
    assert.match(await tulle(["proxy-config", "cluster", "tulle-ingress", "--context", "test"]), /xds-grpc/);
    assert.match(await tulle(["ca", "show", "--context", "test"]), /Trust domain cluster\.local/);
    assert.match(await tulle(["logs", "control-plane", "--context", "test"]), /control plane serves/);
  });

  await t.test("kubectl takes what is printed for it, and finds what is there", async () => {
    const file = path.join(temporaryFolder("tulle-install-"), "tulle.yaml");
    await writeFile(file, await tulle(["manifest", "generate", ...values]));
    const applied = await kubectl(["apply", "--server-side", "--force-conflicts", "-f", file]);
    assert.match(applied, /serverside-applied/);
    assert.deepEqual(await everything(), installed);
  });

  await t.test("tags lead to revisions, and to no revision that is not there", async () => {
    assert.match(await tulle(["tag", "set", "prod", "--revision", "none"], 1), /there is no revision none/);
    await tulle(["tag", "set", "prod"]);
    assert.match(await tulle(["tag", "list"]), /prod\s+default/);
    // As after a change of the mesh's root: what it had is the one before.
    const configuration = "mutatingwebhookconfiguration/tulle-revision-tag-prod";
    const bundleOf = (name: string): Promise<string> =>
      kubectl(["get", name, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}"]);
    const own = await bundleOf("mutatingwebhookconfiguration/tulle-sidecar-injector");
    const other = Buffer.from((await testCertificate({})).certificate).toString("base64");
    await kubectl([
      "patch",
      configuration,
      "--type=json",
      "-p",
      JSON.stringify([{ op: "replace", path: "/webhooks/0/clientConfig/caBundle", value: other }]),
    ]);
    await waitFor(async () => (await bundleOf(configuration)) === own, { what: "the mesh's root to be there again" });
    await tulle(["tag", "remove", "prod"]);
  });

  await t.test("no right is missing, and each one is used", async () => {
    const events = (await readFile(auditLog(folder), "utf8"))
      .split("\n")
      .filter((line) => line.includes(account))
      .map((line) => JSON.parse(line) as Event)
      .filter(({ user, requestReceivedTimestamp: at }) => user.username === account && at > startedAt);
    const textOf = ({ verb, objectRef: { apiGroup = "", resource, subresource } = {} }: Event): string =>
      `${verb} ${apiGroup}/${resource}${subresource === undefined ? "" : `/${subresource}`}`;
    assert.deepEqual(events.filter(({ responseStatus }) => responseStatus?.code === 403).map(textOf), []);
    const used = new Set(events.map(textOf));
    const roles = await Promise.all(
      [
        ["clusterrole", "tulled"],
        ["role", "tulled", "-n", "tulle-system"],
      ].map((which) => kubectl(["get", ...which, "-o", "json"])),
    );
    const unused = roles
      .flatMap((text) => (JSON.parse(text) as Role).rules)
      .flatMap(({ apiGroups, resources, verbs }) =>
        verbs.flatMap((verb) => resources.map((resource) => `${verb} ${apiGroups[0]}/${resource}`)),
      )
      // What is applied where there is none takes the right to create it, and is logged as a patch. Older API servers
      // are asked to list what newer ones tell by the watch; status, tokens and Secrets of gateways take workloads,
      // which other tests bring.
      .filter(
        (right) => !/^list |^create \/configmaps$|\/status$|tokenreviews|\/secrets$/.test(right) && !used.has(right),
      );
    assert.deepEqual(unused, []);
  });

  await tulle(["uninstall", "--purge", "-y"]);
  assert.deepEqual(await everything(), before);
});
