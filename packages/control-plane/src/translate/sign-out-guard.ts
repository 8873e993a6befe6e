// Signing out is a GET, as Envoy's oauth2 filter has it, and browsers make GETs that nobody asked for: another site's
// page leads there, and what a link points at is fetched in advance. Those are refused before the filter sees them, by
// what browsers say of their requests (Fetch Metadata, Sec-Purpose and its older names). Programs and old browsers say
// nothing and pass.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { RBAC_Action } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import type { PrincipalSchema } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { type HeaderMatcher, HeaderMatcherSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { RBACSchema } from "@tulle/xds/envoy/extensions/filters/http/rbac/v3/rbac_pb";
import { pack } from "./messages.ts";

const signs: readonly { readonly header: string; readonly regex: string }[] = [
  { header: "sec-fetch-site", regex: "cross-site" },
  { header: "sec-purpose", regex: ".*(?:prefetch|prerender|preview).*" },
  { header: "purpose", regex: "(?i:prefetch|preview)" },
  { header: "x-purpose", regex: "(?i:prefetch|preview)" },
  { header: "x-moz", regex: "(?i:prefetch)" },
];

/**
 * An RBAC filter that refuses such requests for `path`, at the hosts of `authority` (a regular expression) or at all.
 */
export function signOutGuard(path: string, authority: HeaderMatcher | undefined): Any {
  const atPath = {
    rule: {
      case: "urlPath",
      value: { rule: { case: "path", value: { matchPattern: { case: "exact", value: path } } } },
    },
  } as const;
  const rules = [atPath, ...(authority === undefined ? [] : [{ rule: { case: "header", value: authority } } as const])];
  const principals = signs.map(({ header, regex }): MessageInitShape<typeof PrincipalSchema> => ({
    identifier: {
      case: "header",
      value: create(HeaderMatcherSchema, {
        name: header,
        headerMatchSpecifier: {
          case: "stringMatch",
          value: { matchPattern: { case: "safeRegex", value: { regex } } },
        },
      }),
    },
  }));
  return pack(RBACSchema, {
    rules: {
      action: RBAC_Action.DENY,
      policies: {
        "sign-out-unasked": {
          permissions: [{ rule: { case: "andRules", value: { rules } } }],
          principals,
        },
      },
    },
  });
}
