// What the filter that counts gRPC messages tells of one call (Envoy: `GrpcStats::FilterObject`, in the filter state
// under `envoy.filters.http.grpc_stats`).

export interface GrpcMessages {
  readonly request: { readonly count: number };
  readonly response: { readonly count: number };
}

export const grpcMessagesKey = "envoy.filters.http.grpc_stats";

/** `PLAIN`: the numbers alone. Otherwise JSON as of the message, which leaves zeros out. */
export function grpcMessagesText({ request, response }: GrpcMessages, form: string): string {
  if (form === "PLAIN") return `${request.count},${response.count}`;
  return JSON.stringify({
    ...(request.count > 0 && { requestMessageCount: String(request.count) }),
    ...(response.count > 0 && { responseMessageCount: String(response.count) }),
  });
}

export const grpcMessagesType = "type.googleapis.com/envoy.extensions.filters.http.grpc_stats.v3.FilterObject";
