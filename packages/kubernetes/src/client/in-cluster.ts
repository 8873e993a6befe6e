// The account that Kubernetes gives a pod: an address in its environment, and a folder with a token that is replaced
// before it ends.
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import type { ClusterAccess } from "./cluster-access.ts";
import { TokenFile } from "./token-file.ts";

const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Undefined where this process is in no pod, or the pod has no account (`automountServiceAccountToken: false`). */
export async function inClusterAccess(
  environment: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  folder = accountFolder,
): Promise<ClusterAccess | undefined> {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "443" } = environment;
  if (host === "") return undefined;
  const authorityPem = await readFile(path.join(folder, "ca.crt"), "utf8").catch(() => undefined);
  if (authorityPem === undefined) return undefined;
  const namespace = await readFile(path.join(folder, "namespace"), "utf8").catch(() => "default");
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    authorityPem,
    anyCertificate: false,
    credentials: new TokenFile(path.join(folder, "token"), clock),
    namespace: namespace.trim(),
    origin: "the pod's own account",
  };
}
