// The label `grpc_response_status`: a number while requests are counted, a text once a series is made.
import { toldGrpcStatus } from "../../../http/grpc-status.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";

/** gRPC has 17; what an upstream makes up must not become a series each. */
const grpcStatusCount = 17;
const noGrpcStatus = grpcStatusCount;
const unknownGrpcStatus = grpcStatusCount + 1;

/** Below 32. */
export function grpcStatusOf(info: StreamInfo): number {
  const text = toldGrpcStatus(info, info.response);
  if (text === undefined) return noGrpcStatus;
  return /^\d{1,2}$/.test(text) && Number(text) < grpcStatusCount ? Number(text) : unknownGrpcStatus;
}

export function grpcStatusText(status: number): string {
  if (status === noGrpcStatus) return "";
  return status === unknownGrpcStatus ? "unknown" : String(status);
}
