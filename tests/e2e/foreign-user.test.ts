// A program under another user's id on the same machine: it knows everything but a workload's token and key, and gets neither a
// certificate nor configuration, nor a word from a workload under STRICT.
import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import {
  CertificateAuthority,
  createAuthority,
  createCsr,
  generateKey,
  privateKeyPem,
  readWorkloadCertificate,
} from "@tulle/identity";
import {
  authorityAudience,
  createWorkloadTokenKey,
  issueWorkloadToken,
  localTokenIssuer,
  openWorkloadTokenKey,
  workloadTokenKeyFile,
} from "@tulle/identity/workload-token";
import { startProcess, waitFor } from "../tools/processes.ts";
import { ToolUnavailable } from "../tools/tool-unavailable.ts";
import type { Knowledge, Outcomes } from "./foreign-user-program.ts";
import { ShopInstance, type Pod } from "./shop-instance.ts";

const nobody = 65_534;
const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata:
  name: default
  namespace: shop
spec:
  mtls:
    mode: STRICT
`;

/** `caller` is a pod that may call `pod`. */
async function gatherKnowledge(shop: ShopInstance, pod: Pod, caller: Pod): Promise<Knowledge> {
  const state = path.join(shop.folder, ".tulle");
  const { xdsAddress } = JSON.parse(await readFile(path.join(state, "instance.json"), "utf8")) as {
    xdsAddress: string;
  };
  const folder = path.join(state, "pods", pod.name);
  const kept = await readWorkloadCertificate(path.join(folder, "workload-certificate.json"), Date.now());
  assert.ok(kept?.ok, "the workload has a certificate");
  const { spiffeId } = kept.certificate;
  const { namespace, serviceAccount } = spiffeId;
  const genuine = await openWorkloadTokenKey(path.join(state, workloadTokenKeyFile));
  assert.ok(genuine.ok);
  const request = {
    identity: { namespace, serviceAccount, pod: { name: pod.name, uid: pod.name } },
    issuer: localTokenIssuer,
    nowMs: Date.now(),
  };
  const key = await generateKey();
  const ownAuthority = await createAuthority({ trustDomain: spiffeId.trustDomain, nowMs: Date.now() });
  const signing = new CertificateAuthority({
    trustDomain: spiffeId.trustDomain,
    state: { phase: "steady", signing: ownAuthority },
  });
  const csrPem = createCsr({ key, spiffeId });
  const signed = signing.signWorkload({ csrPem, identity: spiffeId });
  assert.ok(signed.ok);
  return {
    uid: nobody,
    xdsAddress,
    rootsPem: await readFile(path.join(state, "ca", "root-cert.pem"), "utf8"),
    nodeId: `sidecar~${pod.address}~${pod.name}.${namespace}~${namespace}.svc.cluster.local`,
    csrPem,
    tokens: {
      "a forged token": await issueWorkloadToken(await createWorkloadTokenKey(), {
        ...request,
        audience: authorityAudience,
      }),
      "a token for another audience": await issueWorkloadToken(genuine.key, { ...request, audience: "somebody-else" }),
      "no token at all": "letmein",
    },
    selfSigned: { privateKeyPem: privateKeyPem(key), certChainPem: signed.chainPem },
    files: [
      path.join(folder, "token"),
      path.join(folder, "workload-certificate.json"),
      path.join(state, workloadTokenKeyFile),
      path.join(state, "ca", "authority.json"),
      path.join(state, "token"),
    ],
    sockets: [path.join(folder, "xds.sock"), path.join(folder, "sds.sock"), path.join(state, "control-plane.sock")],
    workloads: [`${pod.address}:${pod.app!.port}`],
    ownPorts: [`${caller.address}:15007`, `${caller.address}:15000`],
  };
}

async function tryAs(knowledge: Knowledge): Promise<Outcomes> {
  const program = path.join(import.meta.dirname, "foreign-user-program.ts");
  const started = await startProcess(process.execPath, [program], {
    name: "a foreign program",
    input: JSON.stringify(knowledge),
  });
  const [line] = await started.waitForOutput(/^\{.*\}$/m, { timeoutMs: 60_000 });
  return JSON.parse(line) as Outcomes;
}

test("a program of another user gets neither certificate nor configuration nor an answer, and speaks in nobody's name", async () => {
  if (process.getuid?.() !== 0) {
    throw new ToolUnavailable("root", "only root may start a program under another user's id; run this test as root");
  }
  await using shop = await ShopInstance.start();
  // Tests' own folders are closed to others; what is to keep them out here is the mesh's doing.
  await chmod(path.dirname(shop.folder), 0o755);
  const manifest = path.join(shop.folder, "strict.yaml");
  await writeFile(manifest, strict);
  const pod = await shop.pod("catalog-v1");
  const knowledge = await gatherKnowledge(shop, pod, await shop.pod("webapp"));
  await waitFor(async () => (await shop.tulle("get", "PeerAuthentication", "-n", "shop")).stdout.includes("default"), {
    what: "STRICT to be read",
  });
  await shop.waitForSync();

  const outcomes = await tryAs(knowledge);
  const refusedWith: Readonly<Record<string, RegExp>> = {
    file: /^EACCES$/,
    socket: /^refused EACCES$/,
    certificate: /^UNAUTHENTICATED: /,
    xDS: /^refused /,
    workload: /^(?:refused |closed$)/,
    port: /^(?:refused |closed$)/,
  };
  for (const [what, outcome] of Object.entries(outcomes)) {
    const kind = Object.keys(refusedWith).find((word) => what.startsWith(word)) ?? "workload";
    assert.match(outcome, refusedWith[kind]!, `${what}: ${outcome}`);
  }
  assert.equal(Object.keys(outcomes).length, 5 + 3 + 4 + 3 + 3 + 2, JSON.stringify(outcomes, undefined, 2));
  // The same machine, the same moment: whoever has key and certificate is served.
  assert.equal((await shop.get("/api/catalog")).status, 200);
});
