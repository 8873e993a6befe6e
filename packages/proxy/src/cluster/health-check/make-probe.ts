// Which probe a check is made with.
import { grpcCheckRequest } from "./grpc-check-request.ts";
import type { HealthCheckSettings } from "./health-check-settings.ts";
import type { HealthCheckStats } from "./health-check-stats.ts";
import { httpCheckRequest } from "./http-check-request.ts";
import type { MakeProbe } from "./probe.ts";
import { RequestProbe } from "./request-probe.ts";
import { TcpProbe } from "./tcp-probe.ts";

export function probesOf(settings: HealthCheckSettings, stats: HealthCheckStats): MakeProbe {
  const { check } = settings;
  switch (check.type) {
    case "HTTP":
      return (target, onResult) => new RequestProbe(target, httpCheckRequest(target, check, settings, stats), onResult);
    case "GRPC":
      return (target, onResult) => new RequestProbe(target, grpcCheckRequest(target, check, settings), onResult);
    case "TCP":
      return (target, onResult) => new TcpProbe(target, check, settings, onResult);
  }
}
