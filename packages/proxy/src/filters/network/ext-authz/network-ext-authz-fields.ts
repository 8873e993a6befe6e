// Rows of external authorization of connections (extensions.filters.network.ext_authz.v3).
import { ExtAuthzSchema } from "@tulle/xds/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { type FieldRows, oneVersion } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const networkExtAuthzFields: FieldRows = {
  "envoy.extensions.filters.network.ext_authz.v3.ExtAuthz": {
    used: `stat_prefix grpc_service failure_mode_allow include_peer_certificate filter_enabled_metadata
      include_tls_session metadata_context_namespaces`,
    harmless: { transport_api_version: oneVersion },
    warned: {
      typed_metadata_context_namespaces: "there is no typed metadata",
      send_tls_alert_on_denial: "a connection that is denied is closed",
    },
  },
};

export const networkExtAuthzMessage = checkedMessage(
  ExtAuthzSchema,
  networkExtAuthzFields,
  matcherFields,
  sharedFields,
);
