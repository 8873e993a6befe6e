// Rows of matchers, and of the conditions of a route.
import type { FieldRows } from "../field-row.ts";

const matcher = "envoy.type.matcher.v3";

export const matcherFields: FieldRows = {
  "envoy.config.route.v3.RouteMatch": {
    used: `prefix path safe_regex connect_matcher path_separated_prefix case_sensitive runtime_fraction headers
      query_parameters dynamic_metadata`,
  },
  "envoy.config.route.v3.HeaderMatcher": {
    used: `name exact_match safe_regex_match range_match present_match prefix_match suffix_match contains_match
      string_match invert_match treat_missing_header_as_empty`,
  },
  "envoy.config.route.v3.QueryParameterMatcher": { used: "name string_match present_match" },
  "envoy.config.route.v3.RouteMatch.ConnectMatcher": "",
  [`${matcher}.StringMatcher`]: "exact prefix suffix safe_regex contains ignore_case",
  [`${matcher}.ListStringMatcher`]: "patterns",
  [`${matcher}.PathMatcher`]: "path",
  [`${matcher}.RegexMatcher`]: { used: "regex", harmless: { google_re2: "RE2 is the only engine" } },
  [`${matcher}.RegexMatchAndSubstitute`]: "pattern substitution",
  [`${matcher}.MetadataMatcher`]: "filter path value invert",
  [`${matcher}.MetadataMatcher.PathSegment`]: "key",
  [`${matcher}.ValueMatcher`]: "null_match double_match string_match bool_match present_match list_match or_match",
  [`${matcher}.ValueMatcher.NullMatch`]: "",
  [`${matcher}.DoubleMatcher`]: "range exact",
  [`${matcher}.ListMatcher`]: "one_of",
  [`${matcher}.OrMatcher`]: "value_matchers",
};
