// The control plane of a cluster, as a process beside it: what it keeps lies in the API server, several of them agree,
// and one leads.
import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, test, type TestContext } from "node:test";
import { Agent, request } from "undici";
import {
  type AuthorityMaterial,
  createAuthority,
  createCsr,
  generateKey,
  parseCertificates,
  privateKeyPem,
} from "@tulle/identity";
import { customResourceDefinitions, evaluateInstallation } from "@tulle/kubernetes";
import { createCertificate } from "@tulle/xds";
import { outside } from "../tools/cluster/addresses.ts";
import { applyObjects, deleteNamespace, kubectl, kubectlWith } from "../tools/cluster/kubectl.ts";
import { keyOf, kubeconfigBy, startTulled, type Tulled } from "../tools/cluster/tulled.ts";
import { waitFor } from "../tools/processes.ts";

const root = "tulle-system";
const namespace = "control-plane-a";
const other = "control-plane-b";

const namespaceObject = (name: string): object => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
const account = (within: string): object => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name: "web", namespace: within },
});
const pod = (within: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-1", namespace: within, labels: { app: "web" } },
  spec: { serviceAccountName: "web", containers: [{ name: "main", image: "localhost/pause:1" }] },
});

before(async () => {
  await applyObjects([...customResourceDefinitions(), ...[root, namespace, other].map(namespaceObject)]);
  await applyObjects([namespace, other].flatMap((each) => [account(each), pod(each)]));
  await kubectl(["wait", "crd", "-l", "app.kubernetes.io/part-of=tulle", "--for=condition=Established"]);
});
after(async () => {
  for (const each of [namespace, other]) await deleteNamespace(each);
  // Others make it anew.
  await kubectl(["delete", "namespace", root]);
});

const rootsIn = (within: string): Promise<string> => keyOf("configmap", within, "tulle-ca-root-cert", "root-cert.pem");
const holder = async (): Promise<string> =>
  (await kubectl(["get", "lease", "tulle-leader", "-n", root, "-o", "jsonpath={.spec.holderIdentity}"])).trim();

async function apiOf({ httpPort, host }: Tulled, path: string): Promise<Record<string, unknown>> {
  const token = await keyOf("secret", root, "tulle-state", "token");
  const ca = await keyOf("secret", root, "tulle-ca-secret", "root-cert.pem");
  const dispatcher = new Agent({ connect: { ca, servername: "tulled.tulle-system.svc" } });
  const answer = await request(`https://${host}:${httpPort}${path}`, {
    dispatcher,
    headers: { authorization: `Bearer ${token.trim()}` },
  });
  assert.equal(answer.statusCode, 200, `${path}: ${answer.statusCode}`);
  return (await answer.body.json()) as Record<string, unknown>;
}

async function tokenOf(within: string, audience = "istio-ca"): Promise<string> {
  const bound = ["--bound-object-kind=Pod", "--bound-object-name=web-1"];
  return (await kubectl(["create", "token", "web", "-n", within, `--audience=${audience}`, ...bound])).trim();
}

async function certificateBy({ host, xdsPort }: Tulled, bearerToken: string, within = namespace) {
  const key = await generateKey("P-256");
  const spiffeId = { trustDomain: "cluster.local", namespace: within, serviceAccount: "web" };
  const rootsPem = await keyOf("secret", root, "tulle-ca-secret", "root-cert.pem");
  return createCertificate({
    target: `https://${host}:${xdsPort}`,
    tls: () => ({ rootsPem, serverName: "tulled.tulle-system.svc.cluster.local" }),
    csrPem: createCsr({ key, spiffeId }),
    bearerToken,
  });
}

test("of two that start at once one makes the root, both serve it, and one leads", async (t) => {
  const [one, two] = await Promise.all([startTulled(t, { name: "one" }), startTulled(t, { name: "two" })]);
  const pages = await Promise.all([one, two].map((each) => apiOf(each, "/api/v1/ca")));
  assert.deepEqual(pages[0]!["roots"], pages[1]!["roots"]);
  const made = [one, two].filter((each) => /a certificate authority was made/.test(each.process.output()));
  assert.equal(made.length, 1);
  const bundle = await keyOf("secret", root, "tulle-ca-secret", "root-cert.pem");
  const parsed = parseCertificates(bundle);
  assert.ok(parsed.ok && parsed.certificates.length === 1);
  await waitFor(async () => /^(one|two)_/.test(await holder()), { what: "a leader" });
  await waitFor(async () => (await rootsIn(namespace)) === bundle, { what: "the roots in a namespace" });

  // One that is asked to changes the root; the other follows it, and so do the roots in the namespaces.
  const leader = (await holder()).startsWith("one") ? one : two;
  const follower = leader === one ? two : one;
  await kubectl(["get", "secret", "tulle-ca-secret", "-n", root]);
  await rotate(follower);
  await waitFor(async () => (await apiOf(leader, "/api/v1/ca"))["phase"] === "introducing", {
    what: "the leader to follow",
  });
  await waitFor(async () => parseCount(await rootsIn(namespace)) === 2, { what: "both roots in a namespace" });
});

function parseCount(pem: string): number {
  const parsed = parseCertificates(pem);
  return parsed.ok ? parsed.certificates.length : 0;
}

async function rotate({ httpPort, host }: Tulled): Promise<void> {
  const token = await keyOf("secret", root, "tulle-state", "token");
  const ca = await keyOf("secret", root, "tulle-ca-secret", "root-cert.pem");
  const dispatcher = new Agent({ connect: { ca, servername: "tulled.tulle-system.svc" } });
  const answer = await request(`https://${host}:${httpPort}/api/v1/ca/rotate-root`, {
    method: "POST",
    dispatcher,
    headers: { authorization: `Bearer ${token.trim()}` },
  });
  assert.equal(answer.statusCode, 200, await answer.body.text());
}

test("a pod's token gets its certificate, and no other one does", async (t) => {
  const tulled = await startTulled(t, { name: "one" });
  const good = await waitFor(
    async () => {
      const answer = await certificateBy(tulled, await tokenOf(namespace));
      return answer.ok && answer;
    },
    { what: "a certificate", details: () => tulled.process.output() },
  );
  const [leaf] = good.certChain.flatMap((pem) => {
    const parsed = parseCertificates(pem);
    return parsed.ok ? parsed.certificates : [];
  });
  assert.deepEqual(
    leaf?.names.map(({ value }) => value),
    [`spiffe://cluster.local/ns/${namespace}/sa/web`],
  );
  const refused: readonly (readonly [what: string, token: string, says: RegExp])[] = [
    ["another audience", await tokenOf(namespace, "https://kubernetes.default.svc.cluster.local"), /audience istio-ca/],
    ["another namespace", await tokenOf(other), /is for|not/],
    ["none", "abc", /signed JWT/],
  ];
  for (const [what, token, says] of refused) {
    const answer = await certificateBy(tulled, token);
    assert.equal(answer.ok, false, what);
    assert.match(answer.ok ? "" : answer.details, says, what);
  }
});

test("roots are in each namespace soon, are repaired, and are left alone while they are right", async (t) => {
  const tulled = await startTulled(t, { name: "one" });
  await tulled.leads();
  const fresh = "control-plane-c";
  t.after(() => deleteNamespace(fresh));
  await applyObjects([namespaceObject(fresh)]);
  const begunMs = performance.now();
  const bundle = await waitFor(() => rootsIn(fresh), { what: "the roots in a new namespace" });
  t.diagnostic(`there ${Math.round(performance.now() - begunMs)} ms after the namespace was made`);
  assert.equal(bundle, await keyOf("secret", root, "tulle-ca-secret", "root-cert.pem"));
  const versionOf = (): Promise<string> =>
    kubectl(["get", "configmap", "tulle-ca-root-cert", "-n", fresh, "-o", "jsonpath={.metadata.resourceVersion}"]);
  const version = await versionOf();
  await kubectl(["label", "namespace", fresh, "a=b"]);
  await applyObjects([{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "later", namespace: fresh } }]);
  assert.equal(await versionOf(), version);
  await kubectl(["patch", "configmap", "tulle-ca-root-cert", "-n", fresh, "-p", '{"data":{"root-cert.pem":"x"}}']);
  await waitFor(async () => (await rootsIn(fresh)) === bundle, { what: "the edited one to be repaired" });
  await kubectl(["delete", "configmap", "tulle-ca-root-cert", "-n", fresh]);
  await waitFor(async () => (await rootsIn(fresh)) === bundle, { what: "the deleted one to be there again" });
});

test("a leader that is killed is followed by the other, and one that ends gives the lease back", async (t) => {
  const one = await startTulled(t, { name: "one" });
  await one.leads();
  const two = await startTulled(t, { name: "two" });
  one.process.kill("SIGKILL");
  await two.leads();
  assert.match(await holder(), /^two_/);
  await two.process.stop();
  assert.equal(await holder(), "");
  const three = await startTulled(t, { name: "three" });
  await three.leads();
});

test("while the API server is away, certificates and the API go on, and it is followed again afterwards", async (t) => {
  const gate = await openGate(t);
  const tulled = await startTulled(t, { name: "one", kubeconfig: await kubeconfigBy(gate.url) });
  await tulled.leads();
  const token = await tokenOf(namespace);
  const identity = await waitFor(async () => (await certificateBy(tulled, token)).ok, { what: "a certificate" });
  assert.ok(identity);
  gate.close();
  await tulled.process.waitForOutput(/leads no more/);
  const page = await apiOf(tulled, "/api/v1/ca");
  assert.equal(page["trustDomain"], "cluster.local");
  const answer = await certificateBy(tulled, token);
  assert.match(answer.ok ? "" : answer.details, /cannot be looked at now/);
  gate.open();
  await waitFor(async () => (await holder()).startsWith("one_"), { what: "it to lead again" });
  await applyObjects([namespaceObject("control-plane-d")]);
  t.after(() => deleteNamespace("control-plane-d"));
  await waitFor(() => rootsIn("control-plane-d"), { what: "what happened since to be seen" });
});

/** As the installation has them; the Service leads to the process beside the cluster. */
function webhookObjects(port: number): readonly object[] {
  const { objects, problems } = evaluateInstallation([], root);
  assert.deepEqual(problems, []);
  const name = "tulled";
  return [
    ...objects.filter(({ kind }) => /^(Mutating|Validating)WebhookConfiguration$/.test(kind)),
    { apiVersion: "v1", kind: "Service", metadata: { name, namespace: root }, spec: { ports: [{ port: 443 }] } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name, namespace: root, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports: [{ port }],
      endpoints: [{ addresses: [outside[0]], conditions: { ready: true } }],
    },
  ];
}

test("the API server asks for pods and resources, and believes the webhooks through a change of the root", async (t) => {
  const injected = "control-plane-injected";
  const tulled = await startTulled(t, { name: "one" });
  await tulled.leads();
  const made = webhookObjects(tulled.webhookPort);
  t.after(async () => {
    await deleteNamespace(injected);
    for (const kind of ["mutating", "validating"])
      await kubectl(["delete", `${kind}webhookconfiguration`, "-l", "app.kubernetes.io/part-of=tulle"]);
  });
  await applyObjects(made);
  await applyObjects([
    { apiVersion: "v1", kind: "Namespace", metadata: { name: injected, labels: { "tulle-injection": "enabled" } } },
    account(injected),
  ]);
  const bundles = async (): Promise<string> =>
    kubectl(["get", "mutatingwebhookconfiguration", "tulle-sidecar-injector", "-o", "json"]);
  await waitFor(async () => (await bundles()).includes("caBundle"), { what: "the roots of the webhooks" });
  const injection = async (): Promise<readonly string[]> => {
    const dry = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    const { spec } = JSON.parse(await kubectlWith(dry, pod(injected))) as {
      spec: { initContainers?: readonly { name: string }[] };
    };
    return (spec.initContainers ?? []).map(({ name }) => name);
  };
  const containers = await waitFor(injection, { what: "the webhook to be reached", intervalMs: 200 });
  assert.deepEqual(containers.toSorted(), ["tulle-capture", "tulle-proxy"]);

  const route = (weight: number): object => ({
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name: "catalog", namespace: injected },
    spec: {
      hosts: ["catalog"],
      http: [{ match: [{ uri: { regex: weight === 0 ? "(" : ".*" } }], route: [{ destination: { host: "catalog" } }] }],
    },
  });
  await assert.rejects(kubectlWith(["create", "-f", "-"], route(0)), /denied the request: \[/);
  assert.match(await kubectlWith(["create", "-f", "-"], route(1)), /Warning: \[IST0101\][^]*created/);

  // Somebody has edited it, and the root changes: it is right again, and the pods go on being injected.
  const edit = '[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"eA=="}]';
  await kubectl(["patch", "mutatingwebhookconfiguration", "tulle-sidecar-injector", "--type=json", "-p", edit]).catch(
    (error: Error) => assert.match(error.message, /caBundle/),
  );
  const brought = await createAuthority({ trustDomain: "cluster.local", nowMs: Date.now() });
  t.after(() => kubectl(["delete", "secret", "cacerts", "-n", root]));
  await applyObjects([secretOf(brought)]);
  const theirs = brought.roots[0]!.pem.trim();
  await waitFor(
    async () => {
      const { webhooks } = JSON.parse(await bundles()) as { webhooks: { clientConfig: { caBundle: string } }[] };
      const pems = webhooks.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle, "base64").toString());
      return pems.every((pem) => pem.includes(theirs) && parseCount(pem) > 1);
    },
    { what: "the operator's root in the webhooks" },
  );
  assert.equal((await apiOf(tulled, "/api/v1/ca"))["isBroughtAlong"], true);
  assert.deepEqual((await waitFor(injection, { what: "injection with the new roots" })).length, 2);
});

function secretOf({ certificate, key, roots, chain }: AuthorityMaterial): object {
  const pem = (all: AuthorityMaterial["roots"]): string => all.map((each) => each.pem).join("");
  const stringData = {
    "ca-cert.pem": certificate.pem,
    "ca-key.pem": privateKeyPem(key),
    "root-cert.pem": pem(roots),
    "cert-chain.pem": pem(chain),
  };
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "cacerts", namespace: root }, stringData };
}

/** On the way to the API server; closed, it lets nothing through, and ends what is on its way. */
async function openGate(t: TestContext): Promise<{ readonly url: string; open(): void; close(): void }> {
  const config = await kubectl(["config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}"]);
  const { hostname, port } = new URL(config);
  let isOpen = true;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (!isOpen) return void client.destroy();
    const upstream = connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy()).on("close", () => (to.destroy(), sockets.delete(from)));
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => (isOpen = true),
    close: () => {
      isOpen = false;
      for (const socket of sockets) socket.destroy();
    },
  };
}

test("installed, two pods of it serve, agree, and may do all that they ask for", async (t) => {
  const { objects, problems } = evaluateInstallation(
    [{ tulled: { replicaCount: 2, watchIstioResources: false }, global: { tag: "0.1.0" } }],
    root,
  );
  assert.deepEqual(problems, []);
  const own = objects.filter(({ kind }) => kind !== "CustomResourceDefinition");
  t.after(() => kubectlWith(["delete", "--ignore-not-found", "--wait=false", "-f", "-"], listOf(own)));
  await applyObjects(own);
  await kubectl(["rollout", "status", "deployment/tulled", "-n", root, "--timeout=150s"]);
  const logs = async (): Promise<string> => kubectl(["logs", "-n", root, "-l", "app=tulled", "--prefix", "--tail=-1"]);
  await waitFor(async () => /this control plane leads/.test(await logs()), { what: "one to lead", intervalMs: 500 });
  const said = await logs();
  assert.equal(said.match(/control plane serves/g)?.length, 2, said);
  assert.doesNotMatch(said, /\[(?:error|warning)\]/);
  await applyObjects([
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "control-plane-e", labels: { "tulle-injection": "enabled" } },
    },
    account("control-plane-e"),
  ]);
  t.after(() => deleteNamespace("control-plane-e"));
  await waitFor(() => rootsIn("control-plane-e"), { what: "the roots in a new namespace" });
  const dry = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
  const injected = (): Promise<string> => kubectlWith(dry, pod("control-plane-e"));
  await waitFor(async () => /tulle-proxy/.test(await injected()), { what: "a pod to be injected", intervalMs: 200 });
});

const listOf = (items: readonly object[]): object => ({ apiVersion: "v1", kind: "List", items });
