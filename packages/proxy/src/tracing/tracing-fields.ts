// Rows of tracing: the connection manager's, the route's, and of the two tracers.
import { OpenTelemetryConfigSchema } from "@tulle/xds/envoy/config/trace/v3/opentelemetry_pb";
import { ZipkinConfigSchema } from "@tulle/xds/envoy/config/trace/v3/zipkin_pb";
import { UuidRequestIdConfigSchema } from "@tulle/xds/envoy/extensions/request_id/uuid/v3/uuid_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { sharedFields } from "../fields/shared-fields.ts";

const tag = "envoy.type.tracing.v3.CustomTag";
const kind = "envoy.type.metadata.v3.MetadataKind";

/** Of what routes and connection managers have in common. */
export const customTagFields: FieldRows = {
  [tag]: "tag literal environment request_header metadata value value_type",
  [`${tag}.Literal`]: "value",
  [`${tag}.Environment`]: "name default_value",
  [`${tag}.Header`]: "name default_value",
  [`${tag}.Metadata`]: "kind metadata_key default_value",
  [kind]: "request route cluster host",
  [`${kind}.Request`]: "",
  [`${kind}.Route`]: "",
  [`${kind}.Cluster`]: "",
  [`${kind}.Host`]: "",
  "envoy.type.metadata.v3.MetadataKey": "key path",
  "envoy.type.metadata.v3.MetadataKey.PathSegment": "key",
};

export const routeTracingFields: FieldRows = {
  "envoy.config.route.v3.Tracing":
    "client_sampling random_sampling overall_sampling custom_tags operation upstream_operation",
  "envoy.config.route.v3.Decorator": "operation propagate",
};

export const managerTracingFields: FieldRows = {
  "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing": `client_sampling random_sampling overall_sampling max_path_tag_length custom_tags provider spawn_upstream_span
      operation upstream_operation no_context_propagation verbose`,
  "envoy.config.trace.v3.Tracing.Http": "name typed_config",
};

export const requestIdMessage = checkedMessage(UuidRequestIdConfigSchema, {
  [UuidRequestIdConfigSchema.typeName]: "pack_trace_reason use_request_id_for_trace_sampling",
});

export const openTelemetryMessage = checkedMessage(
  OpenTelemetryConfigSchema,
  {
    [OpenTelemetryConfigSchema.typeName]: {
      used: `grpc_service http_service service_name resource_detectors sampler max_cache_size
        set_telemetry_sdk_resource_attributes set_service_name_resource_attribute set_instrumentation_scope`,
      told: "exporter",
    },
  },
  sharedFields,
);

export const zipkinMessage = checkedMessage(
  ZipkinConfigSchema,
  {
    [ZipkinConfigSchema.typeName]: {
      used: `collector_cluster collector_endpoint trace_id_128bit shared_span_context collector_endpoint_version
        collector_hostname trace_context_option collector_service`,
      harmless: { timestamp_trace_ids: "ids are random" },
      warned: { split_spans_for_request: "spawn_upstream_span has taken its place" },
    },
  },
  sharedFields,
);
