// What an authority signs with: its key, its certificate and the way from there to the roots; an immutable value.
import type { KeyObject } from "node:crypto";
import type { Certificate } from "../x509/certificate.ts";

export interface AuthorityMaterial {
  /** Signs the workloads' certificates. */
  readonly certificate: Certificate;
  readonly key: KeyObject;
  /**
   * What a workload sends after its own certificate: from the signing certificate up to, and without, the root. Empty
   * when the root itself signs.
   */
  readonly chain: readonly Certificate[];
  /** What this authority's workloads ask their peers to trust, at least one. */
  readonly roots: readonly Certificate[];
}
