// A token for another audience is refused like any bad one: RFC 6750 §3.1 has 401 for `invalid_token`, where jwt_authn
// answers 403.
import { create } from "@bufbuild/protobuf";
import { ExpressionFilterSchema } from "@tulle/xds/envoy/extensions/access_loggers/filters/cel/v3/cel_pb";
import {
  type LocalReplyConfig,
  LocalReplyConfigSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import type { WorkloadSecurity } from "../scope/proxy-view.ts";
import { pack } from "./messages.ts";

/**
 * Code details and not the failed status in metadata: that stays where another provider takes the request's token, and
 * a policy's own 403 after it would become 401.
 */
const isForAnotherAudience = `response.code_details == "jwt_authn_access_denied{Audiences_in_Jwt_are_not_allowed}"`;

/** Body and challenge stay as the filter wrote them. Undefined where nobody looks at tokens. */
export function tokenRefusals(security: WorkloadSecurity | undefined): LocalReplyConfig | undefined {
  if (security === undefined || security.jwtRules.length === 0) return undefined;
  const typedConfig = pack(ExpressionFilterSchema, { expression: isForAnotherAudience });
  return create(LocalReplyConfigSchema, {
    mappers: [
      {
        filter: {
          filterSpecifier: {
            case: "extensionFilter",
            value: {
              name: "envoy.access_loggers.extension_filters.cel",
              configType: { case: "typedConfig", value: typedConfig },
            },
          },
        },
        statusCode: 401,
      },
    ],
  });
}
