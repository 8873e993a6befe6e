// A health check by gRPC's own protocol: a call of `grpc.health.v1.Health/Check` (HealthCheck.GrpcHealthCheck).
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { isGrpc } from "../../http/grpc-status.ts";
import { setGrpcTimeout } from "../../http/grpc-timeout.ts";
import { framed, MessageReader } from "../../upstream/grpc-framing.ts";
import type { GrpcCheck, HealthCheckSettings } from "./health-check-settings.ts";
import { checkAuthority, checkHead } from "./http-check-request.ts";
import { activeFailure, type CheckTarget, success } from "./probe.ts";
import type { CheckAnswer, CheckRequest } from "./request-probe.ts";

/** A HealthCheckResponse is a number; a server may say more. */
const maxBodyBytes = 64 * 1024;
const serving = 1;

export function grpcCheckRequest(
  target: CheckTarget,
  check: GrpcCheck,
  { alpnProtocols, reusesConnection, timeoutMs }: HealthCheckSettings,
): CheckRequest {
  const { serviceName } = check;
  const message =
    serviceName === "" ? new BinaryWriter() : new BinaryWriter().tag(1, WireType.LengthDelimited).string(serviceName);
  return {
    protocol: "HTTP/2",
    alpnProtocols,
    reusesConnection,
    maxBodyBytes,
    body: framed(message.finish()),
    head: () => {
      const head = checkHead(target, {
        method: "POST",
        path: "/grpc.health.v1.Health/Check",
        authority: checkAuthority(target, check.authority),
        headers: ["te", "trailers", "content-type", "application/grpc", "user-agent", "Envoy/HC"],
      });
      check.changeHeaders?.(head.headers, target.host, head);
      setGrpcTimeout(head.headers, timeoutMs);
      return head;
    },
    judge: (answer) => (isServing(answer) ? success : activeFailure()),
  };
}

function isServing({ head, body, trailers }: CheckAnswer): boolean {
  if (head.status !== 200 || !isGrpc(head.headers) || trailers?.get("grpc-status") !== "0") return false;
  const statuses: (number | undefined)[] = [];
  const reader = new MessageReader(maxBodyBytes, (message) => statuses.push(servingStatus(message)));
  return reader.take(body) === undefined && statuses.length === 1 && statuses[0] === serving;
}

/** Undefined where the message cannot be read. */
function servingStatus(message: Buffer): number | undefined {
  try {
    const reader = new BinaryReader(message);
    let status = 0;
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === 1 && wireType === WireType.Varint) status = reader.int32();
      else reader.skip(wireType);
    }
    return status;
  } catch {
    return undefined;
  }
}
