// How a server of configuration is spoken to (ApiConfigSource.api_type).
import { ApiConfigSource_ApiType as ApiType } from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { Place, Problems } from "./problems.ts";

/** True where it can be. */
export function checkApiType(type: ApiType, place: Place, problems: Problems): boolean {
  switch (type) {
    case ApiType.GRPC:
    case ApiType.AGGREGATED_GRPC:
      return true;
    case ApiType.DELTA_GRPC:
    case ApiType.AGGREGATED_DELTA_GRPC: {
      const advice = "write GRPC, if the server serves whole states too";
      problems.error(place, `incremental xDS (${nameOf(type)}) is not supported yet; ${advice}`);
      return false;
    }
    default:
      problems.error(place, `${nameOf(type)} is not supported; write GRPC`);
      return false;
  }
}

function nameOf(type: ApiType): string {
  return Object.entries(ApiType).find(([, value]) => value === type)?.[0] ?? String(type);
}
