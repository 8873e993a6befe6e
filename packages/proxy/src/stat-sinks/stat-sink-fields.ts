// Rows of where metrics are sent to.
import { SinkConfigSchema } from "@tulle/xds/envoy/extensions/stat_sinks/open_telemetry/v3/open_telemetry_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { sharedFields } from "../fields/shared-fields.ts";

export const statsSinkFields: FieldRows = {
  "envoy.config.metrics.v3.StatsSink": "name typed_config",
};

export const openTelemetrySinkMessage = checkedMessage(
  SinkConfigSchema,
  {
    [SinkConfigSchema.typeName]: {
      used: `grpc_service http_service resource_detectors report_counters_as_deltas report_histograms_as_deltas
        emit_tags_as_attributes use_tag_extracted_name prefix max_data_points_per_request`,
      told: "custom_metric_conversions",
    },
  },
  sharedFields,
);
