// How a gRPC call ended: in the answer's trailers, in its head where it has no body, or as what its HTTP status means
// (Envoy: `Grpc::Common::getGrpcStatus`).
import type { HeaderMap } from "./header-map.ts";
import type { RequestHead, ResponseHead } from "./message.ts";
import type { StreamInfo } from "./stream-info.ts";

/** By number (https://grpc.github.io/grpc/core/md_doc_statuscodes.html); Envoy's spelling of both. */
const names: readonly (readonly [camel: string, snake: string])[] = [
  ["OK", "OK"],
  ["Canceled", "CANCELLED"],
  ["Unknown", "UNKNOWN"],
  ["InvalidArgument", "INVALID_ARGUMENT"],
  ["DeadlineExceeded", "DEADLINE_EXCEEDED"],
  ["NotFound", "NOT_FOUND"],
  ["AlreadyExists", "ALREADY_EXISTS"],
  ["PermissionDenied", "PERMISSION_DENIED"],
  ["ResourceExhausted", "RESOURCE_EXHAUSTED"],
  ["FailedPrecondition", "FAILED_PRECONDITION"],
  ["Aborted", "ABORTED"],
  ["OutOfRange", "OUT_OF_RANGE"],
  ["Unimplemented", "UNIMPLEMENTED"],
  ["Internal", "INTERNAL"],
  ["Unavailable", "UNAVAILABLE"],
  ["DataLoss", "DATA_LOSS"],
  ["Unauthenticated", "UNAUTHENTICATED"],
];

/** Those that we give ourselves. */
export const grpcStatuses = { unknown: 2, deadlineExceeded: 4, unavailable: 14 } as const;
const { unknown, unavailable } = grpcStatuses;
const byHttpStatus: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  429: unavailable,
  502: unavailable,
  503: unavailable,
  504: unavailable,
};

/** What each means in HTTP, by its number (Envoy: `grpcToHttpStatus`); what is none of them is 500. */
const httpStatuses: readonly number[] = [
  200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401,
];

/** Undefined where nothing is told. */
export function httpStatusOfGrpc(told: string): number | undefined {
  return told === "" ? undefined : (httpStatuses[Number(told)] ?? 500);
}

/** What stands in place of a number that is none. */
const invalid = -1;

/** What the host said, as it came. */
export function toldGrpcStatus(info: StreamInfo, response: ResponseHead | undefined): string | undefined {
  return info.responseTrailers?.get("grpc-status") ?? response?.headers.get("grpc-status");
}

/** Envoy: `Grpc::Common::hasGrpcContentType`. */
export function isGrpc(headers: HeaderMap): boolean {
  const type = headers.get("content-type");
  if (type === undefined || !type.startsWith("application/grpc")) return false;
  return type.length === 16 || type[16] === "+";
}

/** What an HTTP status says of a call that has no gRPC status (Envoy: `httpToGrpcStatus`). */
export function grpcStatusOfHttp(status: number): number {
  return byHttpStatus[status] ?? unknown;
}

/** Undefined for what is no gRPC call, and while there is no answer. */
export function grpcStatus(
  info: StreamInfo,
  request: RequestHead | undefined,
  response: ResponseHead | undefined,
): number | undefined {
  return request !== undefined && isGrpc(request.headers) ? impliedGrpcStatus(info, response) : undefined;
}

/** What the host said, or the HTTP status says, whatever the request was. */
export function impliedGrpcStatus(info: StreamInfo, response: ResponseHead | undefined): number | undefined {
  const told = toldGrpcStatus(info, response);
  if (told !== undefined) return /^\d{1,9}$/.test(told) ? Number(told) : invalid;
  const status = info.responseCode === 0 ? response?.status : info.responseCode;
  return status === undefined ? undefined : grpcStatusOfHttp(status);
}

export function grpcStatusName(status: number, spelling: "camel" | "snake"): string {
  return names[status]?.[spelling === "camel" ? 0 : 1] ?? String(status);
}
