// What a sidecar answers itself in the place of its application, where that means more to callers than the status says.
import { create } from "@bufbuild/protobuf";
import { HeaderValueOption_HeaderAppendAction } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type LocalReplyConfig,
  LocalReplyConfigSchema,
  ResponseMapperSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import type { WorkloadSecurity } from "../scope/proxy-view.ts";
import { tokenRefusals } from "./token-refusals.ts";

/**
 * No connection to the application came about, as while its pod ends: nothing of the request has been sent, so that a
 * caller may ask another pod, whatever the method is. Retries by default heed gRPC's word for it (`unavailable`), and
 * not 503, which an application may have meant.
 */
const unreached = create(ResponseMapperSchema, {
  filter: { filterSpecifier: { case: "responseFlagFilter", value: { flags: ["UF"] } } },
  headersToAdd: [
    {
      header: { key: "grpc-status", value: "14" },
      appendAction: HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    },
  ],
});

export function inboundReplies(security: WorkloadSecurity | undefined): LocalReplyConfig {
  return create(LocalReplyConfigSchema, { mappers: [...(tokenRefusals(security)?.mappers ?? []), unreached] });
}
