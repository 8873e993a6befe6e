// Rows of external authorization (extensions.filters.http.ext_authz.v3).
import {
  ExtAuthzPerRouteSchema,
  ExtAuthzSchema,
} from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const extAuthzFields: FieldRows = {
  "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz": {
    used: `grpc_service http_service failure_mode_allow failure_mode_allow_header_add with_request_body clear_route_cache
      status_on_error metadata_context_namespaces filter_enabled filter_enabled_metadata deny_at_disable
      include_peer_certificate stat_prefix allowed_headers disallowed_headers include_tls_session
      enable_dynamic_metadata_ingestion max_denied_response_body_bytes`,
    harmless: {
      transport_api_version: "there is one version",
      charge_cluster_response_stats: "statistics only",
      emit_client_span: "tracing is not built yet",
    },
    warned: {
      typed_metadata_context_namespaces: "there is no typed metadata",
      emit_filter_state_stats: "statistics only",
      validate_mutations: "headers that could not stand in a request are left out",
    },
  },
  "envoy.extensions.filters.http.ext_authz.v3.HttpService": {
    used: "server_uri path_prefix path_override authorization_request authorization_response retry_policy",
  },
  "envoy.extensions.filters.http.ext_authz.v3.CheckSettings": {
    used: "context_extensions disable_request_body_buffering with_request_body",
    harmless: { emit_client_span: "tracing is not built yet" },
  },
  "envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute": { used: "disabled check_settings" },
  "envoy.extensions.filters.http.ext_authz.v3.BufferSettings": "max_request_bytes allow_partial_message pack_as_bytes",
  "envoy.extensions.filters.http.ext_authz.v3.AuthorizationRequest": "allowed_headers headers_to_add",
  "envoy.extensions.filters.http.ext_authz.v3.AuthorizationResponse": `allowed_upstream_headers
    allowed_upstream_headers_to_append allowed_client_headers allowed_client_headers_on_success
    dynamic_metadata_from_headers`,
  "envoy.type.v3.HttpStatus": "code",
};

const tables = [extAuthzFields, matcherFields, sharedFields] as const;

export const extAuthzMessage = checkedMessage(ExtAuthzSchema, ...tables);
export const extAuthzPerRouteMessage = checkedMessage(ExtAuthzPerRouteSchema, ...tables);
