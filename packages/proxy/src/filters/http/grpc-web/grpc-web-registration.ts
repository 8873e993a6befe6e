// gRPC-Web in the table of filters: `envoy.filters.http.grpc_web`.
import { GrpcWebSchema } from "@tulle/xds/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb";
import { GrpcCallStats } from "../../../cluster/grpc-call-stats.ts";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { GrpcWebFilter } from "./grpc-web-filter.ts";

const grpcWebMessage = checkedMessage(GrpcWebSchema, { [GrpcWebSchema.typeName]: "" });

export const grpcWebRegistration: FilterRegistration = {
  types: [GrpcWebSchema.typeName],
  isTerminal: false,
  compile(config, { name, scope, place, problems }) {
    if (decodeTypedConfig(grpcWebMessage, config, place, problems) === undefined) return undefined;
    const { metrics } = scope;
    return new GrpcWebFilter(
      name,
      new GrpcCallStats({ metrics, protocol: "grpc-web", methods: "all", replacesDots: false }),
    );
  },
};
