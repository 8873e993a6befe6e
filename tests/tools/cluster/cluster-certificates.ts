// The certificates and keys by which the parts of a cluster know each other, in files: one authority signs them all.
import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { type TestCertificate, testCertificate } from "../certificates.ts";
import { apiServiceAddress, apiUrl, nodes } from "./addresses.ts";

export interface ClusterFiles {
  readonly authority: string;
  readonly apiCertificate: string;
  readonly apiKey: string;
  /** Signs the tokens of service accounts. */
  readonly accountKey: string;
  readonly adminCertificate: string;
  readonly adminKey: string;
  readonly kubeconfig: string;
}

export async function writeClusterFiles(folder: string): Promise<ClusterFiles> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const authority = await testCertificate({ commonName: "kubernetes", isAuthority: true });
  const signed = (subject: string, names?: readonly string[]): Promise<TestCertificate> =>
    testCertificate({ subject, issuer: authority, ...(names === undefined ? {} : { names }) });
  const write = async (name: string, content: string): Promise<string> => {
    const file = path.join(folder, name);
    await writeFile(file, content, { mode: 0o600 });
    return file;
  };
  const [api, admin] = await Promise.all([
    signed("/CN=kube-apiserver", apiNames),
    signed("/O=system:masters/CN=admin"),
  ]);
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    authority: await write("authority.crt", authority.certificate),
    apiCertificate: await write("api.crt", api.certificate),
    apiKey: await write("api.key", api.key),
    accountKey: await write("accounts.key", privateKey.export({ type: "pkcs8", format: "pem" })),
    adminCertificate: await write("admin.crt", admin.certificate),
    adminKey: await write("admin.key", admin.key),
    kubeconfig: await write("kubeconfig", kubeconfigOf(authority, admin)),
  };
}

const serviceNames = [
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];
const apiNames = [
  ...[...serviceNames, "localhost"].map((name) => `DNS:${name}`),
  ...[apiServiceAddress, "127.0.0.1", ...nodes[0].addresses].map((address) => `IP:${address}`),
];

function kubeconfigOf(authority: TestCertificate, admin: TestCertificate): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "test", cluster: { server: apiUrl, "certificate-authority-data": base64(authority.certificate) } },
    ],
    users: [
      {
        name: "admin",
        user: { "client-certificate-data": base64(admin.certificate), "client-key-data": base64(admin.key) },
      },
    ],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
    "current-context": "test",
  });
}
