// Refuses what Envoy leaves of `/x/%2e%2e;/admin`. It takes parameters off dot segments before it reads escapes and
// backslashes, so that `/x/..;/admin` goes on, which servers of Java read as `/admin`, past every rule for that path.
// Tulle's proxy has resolved it by then.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { type PermissionSchema, RBAC_Action } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import { pack } from "./messages.ts";

/** For paths that are normalized: there each segment of dots alone, with parameters, was hidden. */
export function hiddenDotSegments(): Any {
  return pack(RBACSchema, {
    rules: {
      action: RBAC_Action.DENY,
      policies: {
        "hidden-dot-segment": {
          permissions: [pathContains("/.;"), pathContains("/..;")],
          principals: [{ identifier: { case: "any", value: true } }],
        },
      },
    },
  });
}

function pathContains(value: string): MessageInitShape<typeof PermissionSchema> {
  const path = { rule: { case: "path", value: { matchPattern: { case: "contains", value } } } } as const;
  return { rule: { case: "urlPath", value: path } };
}
