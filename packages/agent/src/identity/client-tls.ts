// How a workload connects to its control plane: it shows its certificate, and insists on the control plane's name.
import type { WorkloadCertificate } from "@tulle/identity";
import type { ClientTls } from "@tulle/xds";

/** The name that a control plane proves by its serving certificate, whatever address it is reached at. */
export const controlPlaneName = "tulled.tulle-system.svc";

export function clientTls({ keyPem, chainPem, rootsPem }: WorkloadCertificate): ClientTls {
  return { rootsPem, serverName: controlPlaneName, identity: { privateKeyPem: keyPem, certChainPem: chainPem } };
}
