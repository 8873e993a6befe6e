// The settings of a machine's agent: the environment of `tulle agent`, as `tulle up` makes it for a pod.
import path from "node:path";
import { type MachineIdentity, rootsFile } from "./machine-state.ts";

/** Where programs that know their proxy send their requests (Istio: proxyHttpPort). */
export const outboundProxyPort = 15_007;

/** The proxy's pages and its way out: programs of this user alone, on this machine alone. */
const ownUserPorts = `15000,${outboundProxyPort}`;

export interface MachineSettings {
  readonly machine: MachineIdentity;
  readonly stateFolder: string;
  readonly address: string;
  /** The kernel leads connections through the proxy. */
  readonly isCaptured: boolean;
  /** The agent answers questions for names, at port 15053 of localhost. */
  readonly answersDns: boolean;
}

export function machineEnvironment({
  machine,
  stateFolder,
  address,
  isCaptured,
  answersDns,
}: MachineSettings): Readonly<Record<string, string>> {
  const { name, namespace, group, serviceAccount, trustDomain, clusterId, controlPlane } = machine;
  const metadata = {
    NAME: name,
    NAMESPACE: namespace,
    WORKLOAD_NAME: group,
    SERVICE_ACCOUNT: serviceAccount,
    CLUSTER_ID: clusterId,
    MESH_ID: trustDomain,
    INSTANCE_IPS: address,
    INTERCEPTION_MODE: isCaptured ? "REDIRECT" : "NONE",
    APP_ADDRESS: "127.0.0.1",
  };
  return {
    POD_NAME: name,
    POD_NAMESPACE: namespace,
    INSTANCE_IP: address,
    SERVICE_ACCOUNT: serviceAccount,
    TRUST_DOMAIN: trustDomain,
    TULLE_XDS_ADDRESS: controlPlane,
    TULLE_CA_ROOT_FILE: path.join(stateFolder, rootsFile),
    TULLE_STATE_DIR: stateFolder,
    TULLE_NODE_METADATA: JSON.stringify(metadata),
    TULLE_OWN_USER_PORTS: ownUserPorts,
    TULLE_MACHINE: "yes",
    ...(answersDns ? { DNS_PROXY_ADDR: "localhost:15053" } : {}),
  };
}
