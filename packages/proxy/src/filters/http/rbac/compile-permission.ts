// What a policy lets be done, as a condition (config.rbac.v3.Permission).
import { MetadataSource, type Permission } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import { portOf } from "./address.ts";
import { type Condition, type TextSource, allOf, always, never, not, textCondition } from "./condition.ts";
import { anyOf } from "./condition-index.ts";
import { compileMetadataCondition } from "./metadata-condition.ts";
import {
  compileAddressCondition,
  compileHeaderCondition,
  compilePathCondition,
  localAddress,
} from "./request-conditions.ts";

const serverNameSource: TextSource = {
  key: "requested_server_name",
  read: (_request, info) => info.requestedServerName,
};

export function compilePermission(permission: Permission, place: Place, problems: Problems): Condition {
  const rule = permission.rule;
  switch (rule.case) {
    case "any":
      if (!rule.value) problems.error(place.field("any"), "value must equal true");
      return always;
    case "andRules":
      return allOf(compileSet(rule.value.rules, place.field("and_rules"), problems));
    case "orRules":
      return anyOf(compileSet(rule.value.rules, place.field("or_rules"), problems));
    case "notRule":
      return not(compilePermission(rule.value, place.field("not_rule"), problems));
    case "header":
      return compileHeaderCondition(rule.value, place.field("header"), problems);
    case "urlPath":
      return compilePathCondition(rule.value, place.field("url_path"), problems);
    case "destinationIp":
      return compileAddressCondition(localAddress, rule.value, place.field("destination_ip"), problems);
    case "destinationPort":
      return portCondition(rule.value, rule.value + 1);
    case "destinationPortRange":
      return compilePortRange(rule.value, place.field("destination_port_range"), problems);
    case "metadata":
      return compileMetadataCondition(rule.value, "dynamic", place.field("metadata"), problems);
    case "sourcedMetadata": {
      const origin = rule.value.metadataSource === MetadataSource.ROUTE ? "route" : "dynamic";
      const at = place.field("sourced_metadata").field("metadata_matcher");
      return compileMetadataCondition(rule.value.metadataMatcher, origin, at, problems);
    }
    case "requestedServerName":
      return textCondition(serverNameSource, rule.value, place.field("requested_server_name"), problems);
    case "matcher":
      problems.error(place.field("matcher"), "this field is not supported");
      return never;
    case "uriTemplate":
      problems.error(place.field("uri_template"), "this field is not supported");
      return never;
    case undefined:
      problems.error(place.field("rule"), "is required");
      return never;
  }
}

function compileSet(rules: readonly Permission[], place: Place, problems: Problems): readonly Condition[] {
  if (rules.length === 0) problems.error(place.field("rules"), "value must contain at least 1 item(s)");
  return rules.map((rule, index) => compilePermission(rule, place.field("rules", index), problems));
}

function compilePortRange(
  range: { readonly start: number; readonly end: number },
  place: Place,
  problems: Problems,
): Condition {
  const { start, end } = range;
  for (const [name, value] of Object.entries({ start, end })) {
    if (value < 0 || value > 65_536) problems.error(place.field(name), `range ${name} ${value} is out of bounds`);
  }
  if (start >= end) problems.error(place, `range start ${start} cannot be greater or equal than range end ${end}`);
  return portCondition(start, end);
}

function portCondition(start: number, end: number): Condition {
  return {
    matches: (_request, info) => {
      const port = portOf(info.downstreamLocalAddress);
      return port >= start && port < end;
    },
    anchorSets: [],
  };
}
