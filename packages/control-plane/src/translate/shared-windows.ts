// How much of what nobody reads a connection of HTTP/2 takes, for `Http2ProtocolOptions`, in bytes. Clients that do not
// know of each other share it: who stands still fills a window of its own, and does not close the connection's to the
// others. Envoy's defaults let two streams do so (16 and 24 MiB).

/**
 * Of requests between sidecars: 32 may stand still. Each may fill a buffer behind its window as well, so that a larger
 * window of the connection is more memory for whoever attacks by uploads that nobody reads.
 */
export const requestWindows = { initialStreamWindowSize: 128 * 1024, initialConnectionWindowSize: 4 * 1024 * 1024 };

/** Of answers: a hundred may. Hosts on Node's `http2` cut answers off where the connection's window is closed. */
export const answerWindows = { initialStreamWindowSize: 256 * 1024, initialConnectionWindowSize: 24 * 1024 * 1024 };
