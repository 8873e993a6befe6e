// How long the queue before an open door is.

/**
 * Connections that the kernel keeps until a listening process accepts them, at most; the system's `somaxconn` bounds
 * it. Node's own default is 511: when more knock together, the kernel drops them, and each knocks again after a second,
 * the probes too. Envoy asks for `somaxconn` likewise.
 */
export const acceptBacklog = 4096;
