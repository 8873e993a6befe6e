// Loads gRPC when a server or a stream is opened: importing the package for its types or its codec costs nothing of it.
import { subscribe } from "node:diagnostics_channel";
import type { ClientHttp2Stream } from "node:http2";
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

let loaded: Promise<typeof import("@grpc/grpc-js")> | undefined;

export function loadGrpc(): Promise<typeof import("@grpc/grpc-js")> {
  loaded ??= Promise.resolve().then(() => {
    const grpc = load("@grpc/grpc-js") as typeof import("@grpc/grpc-js");
    // It writes to standard error what it reports to its caller as well.
    grpc.setLogVerbosity(grpc.logVerbosity.NONE);
    subscribe("http2.client.stream.created", closeWithPeer);
    return grpc;
  });
  return loaded;
}

/**
 * Of a server that ends its side without trailers (RFC 9113 §8.1) it tells nobody: our side of the HTTP/2 stream is
 * open, and it waits for the stream to close. Nothing can come on such a stream any more.
 */
function closeWithPeer(created: unknown): void {
  const { stream } = created as { readonly stream: ClientHttp2Stream };
  stream.once("end", () => setImmediate(() => stream.close()));
}
