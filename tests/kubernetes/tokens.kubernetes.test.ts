// Tokens that a real cluster hands to pods: believed for the pod that they are of, and for the authority's audience
// alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { KubernetesClient, kubeconfigAccess, tokenReviewer } from "@tulle/kubernetes";
import { systemClock } from "@tulle/timing";
import { waitFor } from "../tools/processes.ts";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";

const namespace = "tokens";

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "one", namespace },
  spec: {
    serviceAccountName: "shop",
    containers: [{ name: "main", image: "localhost/pause:1" }],
  },
};

before(() =>
  applyObjects([
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "shop", namespace } },
    pod,
  ]),
);
after(() => deleteNamespace(namespace));

const tokenFor = async (audience: string, ...more: readonly string[]): Promise<string> =>
  (await kubectl(["create", "token", "shop", "-n", namespace, `--audience=${audience}`, ...more])).trim();

async function judge(token: string) {
  const access = await kubeconfigAccess({ environment: process.env, clock: systemClock });
  const client = new KubernetesClient(access!, "tulle-test");
  try {
    return await tokenReviewer(client, Date.now)(token);
  } finally {
    await client.close();
  }
}

test("a pod's token for the authority says whose it is, until the pod is gone", async () => {
  const token = await tokenFor("istio-ca", "--bound-object-kind=Pod", "--bound-object-name=one");
  const uid = await kubectl(["get", "pod", "one", "-n", namespace, "-o", "jsonpath={.metadata.uid}"]);
  assert.deepEqual(await judge(token), {
    ok: true,
    identity: { namespace, serviceAccount: "shop", pod: { name: "one", uid } },
  });
  const [head, payload, signature] = token.split(".") as [string, string, string];
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
  const altered = Buffer.from(JSON.stringify({ ...claims, sub: "system:serviceaccount:tokens:other" })).toString(
    "base64url",
  );
  const message = "the workload token is refused: the cluster does not know it";
  assert.deepEqual(await judge(`${head}.${altered}.${signature}`), { ok: false, message });
  await kubectl(["delete", "pod", "one", "-n", namespace, "--force", "--grace-period=0"]);
  // The API server remembers for ten seconds whom it has believed; who asks looks at the pods besides.
  const gone = async (): Promise<boolean> => !(await judge(token)).ok;
  await waitFor(gone, { what: "the token of a pod that is gone to be refused", intervalMs: 500 });
});

const refused: readonly { readonly name: string; readonly token: () => Promise<string>; readonly says: RegExp }[] = [
  {
    name: "for the API server itself",
    token: () => tokenFor("https://kubernetes.default.svc.cluster.local"),
    says: /not for the audience istio-ca$/,
  },
  { name: "of no pod", token: () => tokenFor("istio-ca"), says: /names no service account and pod$/ },
  { name: "that is none", token: async () => "abc", says: /no signed JWT$/ },
  {
    name: "of nobody",
    token: async () => `e30.${Buffer.from('{"aud":"istio-ca","exp":9e12}').toString("base64url")}.e30`,
    says: /the cluster does not know it$/,
  },
];

for (const { name, token, says } of refused) {
  test(`a token ${name} is refused`, async () => {
    const verdict = await judge(await token());
    assert.equal(verdict.ok, false);
    assert.match((verdict as { message: string }).message, says);
  });
}
