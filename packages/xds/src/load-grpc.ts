// Loads gRPC when a server or a stream is opened: importing the package for its types or its codec costs nothing of it.

let loaded: Promise<typeof import("@grpc/grpc-js")> | undefined;

export function loadGrpc(): Promise<typeof import("@grpc/grpc-js")> {
  loaded ??= import("@grpc/grpc-js").then((grpc) => {
    // It writes to standard error what it reports to its caller as well.
    grpc.setLogVerbosity(grpc.logVerbosity.NONE);
    return grpc;
  });
  return loaded;
}
