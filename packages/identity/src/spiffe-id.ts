// SPIFFE ids of workloads: who a certificate speaks for, made of the pod's namespace and service account (SPIFFE-ID §2;
// Istio's path form `/ns/<namespace>/sa/<service account>`).
import { trustDomainProblem } from "./trust-domain.ts";

export interface SpiffeId {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

const pattern = /^spiffe:\/\/([^/]*)\/ns\/([^/]*)\/sa\/([^/]*)$/;
/** RFC 1123 label, as Kubernetes checks namespaces. */
const namespacePattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** RFC 1123 subdomain, as Kubernetes checks service accounts. */
const serviceAccountPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** `spiffe://cluster.local/ns/shop/sa/catalog` → its parts; undefined for anything that is not exactly of this form. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const id = { trustDomain: match[1]!, namespace: match[2]!, serviceAccount: match[3]! };
  return isSpiffeId(id) ? id : undefined;
}

/** Whether each part may stand in a SPIFFE id; a part with a slash would otherwise speak for somebody else. */
export function isSpiffeId(id: SpiffeId): boolean {
  return (
    trustDomainProblem(id.trustDomain) === undefined &&
    namespacePattern.test(id.namespace) &&
    id.serviceAccount.length <= 253 &&
    serviceAccountPattern.test(id.serviceAccount)
  );
}

/**
 * The URI of an id. @throws {TypeError} for parts that may not stand in one: no text is ever made that parses to
 * another id.
 */
export function spiffeIdText(id: SpiffeId): string {
  if (!isSpiffeId(id)) throw new TypeError(`no SPIFFE id: ${JSON.stringify(id)}`);
  return `spiffe://${id.trustDomain}/ns/${id.namespace}/sa/${id.serviceAccount}`;
}
