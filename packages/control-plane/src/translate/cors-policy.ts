// The corsPolicy of a route as the CORS filter reads it (Istio: TranslateCORSPolicy).
import type { Any } from "@bufbuild/protobuf/wkt";
import { type HttpRoute, parseDuration } from "@tulle/config";
import { CorsPolicySchema } from "@tulle/xds/envoy/extensions/filters/http/cors/v3/cors_pb";
import { pack } from "./messages.ts";
import { stringMatcher } from "./route-match.ts";

/** By which a route's settings find the filter. */
export const corsFilterName = "envoy.filters.http.cors";

export function corsPolicy(policy: NonNullable<HttpRoute["corsPolicy"]>): Any {
  const { allowOrigin = [], allowOrigins, allowCredentials, maxAge, unmatchedPreflights } = policy;
  const origins = allowOrigins ?? allowOrigin.map((exact) => ({ exact }));
  return pack(CorsPolicySchema, {
    allowOriginStringMatch: origins.flatMap((origin) => stringMatcher(origin) ?? []),
    allowMethods: policy.allowMethods?.join(",") ?? "",
    allowHeaders: policy.allowHeaders?.join(",") ?? "",
    exposeHeaders: policy.exposeHeaders?.join(",") ?? "",
    maxAge: maxAge === undefined ? "" : String(parseDuration(maxAge)! / 1_000),
    ...(allowCredentials === undefined ? {} : { allowCredentials }),
    ...(unmatchedPreflights === "IGNORE" ? { forwardNotMatchingPreflights: false } : {}),
  });
}
