// SPIFFE ids of workloads: who a certificate speaks for, made of the pod's namespace and service account (SPIFFE-ID §2;
// Istio's path form `/ns/<namespace>/sa/<service account>`).

export interface SpiffeId {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

const pattern = /^spiffe:\/\/([a-z0-9._-]{1,255})\/ns\/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/sa\/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)$/;

/** `spiffe://cluster.local/ns/shop/sa/catalog` → its parts; undefined for anything that is not exactly of this form. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  return { trustDomain: match[1]!, namespace: match[2]!, serviceAccount: match[3]! };
}

export function spiffeIdText(id: SpiffeId): string {
  return `spiffe://${id.trustDomain}/ns/${id.namespace}/sa/${id.serviceAccount}`;
}
