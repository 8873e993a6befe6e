// What pages of other origins may do, as a route says it (extensions.filters.http.cors.v3.CorsPolicy).
import {
  type CorsPolicy as PolicyMessage,
  CorsPolicySchema,
} from "@tulle/xds/envoy/extensions/filters/http/cors/v3/cors_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import { fractionOf } from "../../../fields/matchers/fraction.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import type { TextMatch } from "../../../fields/matchers/regex.ts";
import { compileStringMatcher } from "../../../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

export const corsPolicyMessage = checkedMessage(
  CorsPolicySchema,
  {
    [CorsPolicySchema.typeName]: `allow_origin_string_match allow_methods allow_headers expose_headers max_age
      allow_credentials filter_enabled shadow_enabled allow_private_network_access forward_not_matching_preflights`,
  },
  matcherFields,
  sharedFields,
);

/** Texts stand in answers as they are; an empty one is not sent. */
export interface CorsPolicy {
  readonly allowOrigins: readonly TextMatch[];
  readonly allowMethods: string;
  readonly allowHeaders: string;
  readonly exposeHeaders: string;
  readonly maxAge: string;
  readonly allowCredentials: boolean | undefined;
  readonly allowPrivateNetworkAccess: boolean | undefined;
  readonly forwardUnmatchedPreflights: boolean | undefined;
  /** Of requests, in [0, 1]: those that it holds for, and those whose origin is only counted. */
  readonly enabledShare: number;
  readonly shadowShare: number;
}

/** What the policy does not say, the one above it does (a virtual host's, say), as in Envoy. */
export function compileCorsPolicy(
  message: PolicyMessage,
  above: CorsPolicy | undefined,
  place: Place,
  problems: Problems,
): CorsPolicy {
  const { filterEnabled, shadowEnabled, allowOriginStringMatch } = message;
  const own = allowOriginStringMatch.map((matcher, index) =>
    compileStringMatcher(matcher, place.field("allow_origin_string_match", index), problems),
  );
  const text = (name: "allowMethods" | "allowHeaders" | "exposeHeaders" | "maxAge"): string =>
    message[name] === "" ? (above?.[name] ?? "") : message[name];
  return {
    allowOrigins: own.length === 0 ? (above?.allowOrigins ?? []) : own,
    allowMethods: text("allowMethods"),
    allowHeaders: text("allowHeaders"),
    exposeHeaders: text("exposeHeaders"),
    maxAge: text("maxAge"),
    allowCredentials: message.allowCredentials ?? above?.allowCredentials,
    allowPrivateNetworkAccess: message.allowPrivateNetworkAccess ?? above?.allowPrivateNetworkAccess,
    forwardUnmatchedPreflights: message.forwardNotMatchingPreflights ?? above?.forwardUnmatchedPreflights,
    enabledShare: filterEnabled?.defaultValue === undefined ? 1 : fractionOf(filterEnabled.defaultValue),
    shadowShare: shadowEnabled?.defaultValue === undefined ? 0 : fractionOf(shadowEnabled.defaultValue),
  };
}
