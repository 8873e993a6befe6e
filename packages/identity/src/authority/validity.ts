// How long certificates live; Istio's defaults where it has them.

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A certificate is valid from a little before it was made, for peers whose clock is behind (Istio: 2 minutes). */
export const backdateMs = 120_000;

/** Ten years (Istio's CITADEL_SELF_SIGNED_CA_CERT_TTL). */
export const authorityLifetimeMs = 3650 * dayMs;

/** DEFAULT_WORKLOAD_CERT_TTL. */
export const defaultWorkloadTtlMs = 24 * hourMs;

/** MAX_WORKLOAD_CERT_TTL. */
export const maxWorkloadTtlMs = 90 * dayMs;
