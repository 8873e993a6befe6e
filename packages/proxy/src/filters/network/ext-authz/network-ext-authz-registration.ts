// External authorization of connections in the table of network filters.
import { ExtAuthzSchema } from "@tulle/xds/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb";
import { compileMetadataMatcher } from "../../../fields/matchers/metadata-matcher.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import { compileGrpcAuthorizer } from "../../http/ext-authz/compile-grpc-authorizer.ts";
import type { NetworkFilterRegistration } from "../network-filter-registration.ts";
import { NetworkExtAuthzFilter } from "./network-ext-authz-filter.ts";
import { makeNetworkExtAuthzStats } from "./network-ext-authz-stats.ts";
import { networkExtAuthzMessage } from "./network-ext-authz-fields.ts";

export const networkExtAuthzRegistration: NetworkFilterRegistration = {
  types: [ExtAuthzSchema.typeName],
  isTerminal: false,
  compile(config, { name, listener, place }) {
    const { problems, scope } = listener;
    const message = decodeTypedConfig(networkExtAuthzMessage, config, place, problems);
    if (message === undefined) return undefined;
    if (message.statPrefix === "") {
      problems.error(place.field("stat_prefix"), "value length must be at least 1 characters");
    }
    if (message.grpcService === undefined) problems.error(place.field("grpc_service"), "is required");
    const authorizer =
      message.grpcService && compileGrpcAuthorizer(message.grpcService, message, listener, place.field("grpc_service"));
    const enabled = message.filterEnabledMetadata;
    const enabledBy =
      enabled && compileMetadataMatcher(enabled, place.field("filter_enabled_metadata"), problems)?.matches;
    if (authorizer === undefined || problems.hasErrors) return undefined;
    return new NetworkExtAuthzFilter({
      name,
      authorizer,
      failureModeAllow: message.failureModeAllow,
      enabledBy,
      metadataNamespaces: message.metadataContextNamespaces,
      stats: makeNetworkExtAuthzStats(scope.metrics, message.statPrefix),
      log: scope.logging.logger("ext_authz"),
    });
  },
};
