// A shop under STRICT, and what a program that is no part of it may know and make: addresses, roots, a key and an
// authority of its own, tokens that do not count.
import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
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
import type { Knowledge, Outcomes } from "./foreign-user-program.ts";
import { ShopInstance, type Pod, type ShopOptions } from "./shop-instance.ts";

export const nobody = 65_534;

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

export async function startStrictShop(
  options: Pick<ShopOptions, "args" | "env" | "without"> = {},
): Promise<ShopInstance> {
  const prepare = (folder: string): Promise<void> => writeFile(path.join(folder, "strict.yaml"), strict);
  const shop = await ShopInstance.start({ ...options, prepare });
  // Tests' own folders are closed to others; what is to keep them out here is the mesh's doing.
  await chmod(path.dirname(shop.folder), 0o755);
  return shop;
}

/** `caller` is a pod that may call `pod`. */
export async function gatherKnowledge(shop: ShopInstance, pod: Pod, caller: Pod): Promise<Knowledge> {
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
    xdsAddresses: [xdsAddress],
    rootsPem: await readFile(path.join(state, "ca", "root-cert.pem"), "utf8"),
    nodeId: `sidecar~${pod.address}~${pod.name}.${namespace}~${namespace}.svc.cluster.local`,
    csrPem,
    tokens: {
      "a forged token": await issueWorkloadToken(await createWorkloadTokenKey(), {
        ...request,
        audience: authorityAudience,
      }),
      "an expired token": await issueWorkloadToken(genuine.key, {
        ...request,
        audience: authorityAudience,
        nowMs: Date.now() - 86_400_000,
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
    ports: [`${caller.address}:15007`, `${caller.address}:15000`],
  };
}

const isRefused = /^(?:refused |closed$|silence$)/;
const refusals: readonly (readonly [about: string, outcome: RegExp])[] = [
  ["file ", /^EACCES$/],
  ["socket ", /^refused EACCES$/],
  ["certificate ", /^(?:UNAUTHENTICATED|UNAVAILABLE|DEADLINE_EXCEEDED): /],
];

/** Neither file nor certificate nor configuration nor a word. */
export function assertRefused(outcomes: Outcomes): void {
  for (const [what, outcome] of Object.entries(outcomes)) {
    const [, expected] = refusals.find(([about]) => what.startsWith(about)) ?? ["", isRefused];
    assert.match(outcome, expected, `${what}: ${outcome}`);
  }
}
