// `grpc-timeout`: how long a gRPC client waits, and each host after it (https://github.com/grpc/grpc/blob/master/doc/
// PROTOCOL-HTTP2.md, "Timeout"; Envoy: `Grpc::Common::getGrpcTimeout`, `toGrpcTimeout`).
import type { HeaderMap } from "./header-map.ts";

const headerName = "grpc-timeout";
/** TimeoutValue has eight digits at the most. */
const maxValue = 99_999_999;

/** Milliseconds in each unit; a part of a millisecond counts as a whole one. */
const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** What a route makes of `grpc-timeout`. */
export interface GrpcTimeoutRule {
  /** 0 = whatever the client says. */
  readonly maxMs: number;
  /** Taken off, so that the host answers before we give up. */
  readonly offsetMs: number;
}

/** Undefined where the request has none that can be read; 0 is one. */
export function grpcTimeoutMs(headers: HeaderMap): number | undefined {
  const text = headers.get(headerName);
  if (text === undefined) return undefined;
  const match = /^(\d{1,8})([HMSmun])$/.exec(text);
  return match === null ? undefined : Math.ceil(Number(match[1]) * unitMs[match[2]!]!);
}

export function setGrpcTimeout(headers: HeaderMap, timeoutMs: number): void {
  headers.set(headerName, grpcTimeoutText(timeoutMs));
}

/** In the smallest unit that holds it. */
function grpcTimeoutText(timeoutMs: number): string {
  for (const unit of ["m", "S", "M"]) {
    const value = Math.floor(timeoutMs / unitMs[unit]!);
    if (value <= maxValue) return `${value}${unit}`;
  }
  return `${Math.min(maxValue, Math.floor(timeoutMs / unitMs["H"]!))}H`;
}

/** An offset as long as the time-out itself leaves it as it is: 0 would be no limit, and less has no meaning. */
export function lessOffset(timeoutMs: number, { offsetMs }: GrpcTimeoutRule): number {
  return offsetMs < timeoutMs ? timeoutMs - offsetMs : timeoutMs;
}
