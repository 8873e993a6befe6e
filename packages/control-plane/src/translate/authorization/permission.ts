// What a rule lets be done → Envoy's permissions: each operation of `to`, with the conditions of `when` that are about
// the connection's destination.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AuthorizationCondition,
  type AuthorizationOperation,
  type AuthorizationRule,
  splitIpBlock,
} from "@tulle/config";
import type { PermissionSchema } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import { filterMetadataMatch, headerMatch, pathMatch, textMatch } from "./text-match.ts";

export type Permission = MessageInitShape<typeof PermissionSchema>;

/** One for each entry of `to`; any of them is enough. */
export function permissions(rule: AuthorizationRule): Permission[] {
  const conditions = (rule.when ?? []).flatMap(conditionPermissions);
  const operations = rule.to ?? [];
  if (operations.length === 0) return [allOf(conditions)];
  return operations.map(({ operation }) => allOf([...operationPermissions(operation), ...conditions]));
}

function operationPermissions(operation: AuthorizationOperation): readonly Permission[] {
  const { hosts, notHosts, methods, notMethods, paths, notPaths, ports, notPorts } = operation;
  return [
    ...valuesAndNot(hosts, notHosts, (host) => header(":authority", host, true)),
    ...valuesAndNot(methods, notMethods, (method) => header(":method", method, false)),
    ...valuesAndNot(paths, notPaths, (path) => ({ rule: { case: "urlPath", value: pathMatch(path) } })),
    ...valuesAndNot(ports, notPorts, destinationPort),
  ];
}

function conditionPermissions({ key, values, notValues }: AuthorizationCondition): readonly Permission[] {
  if (key === "destination.ip") return valuesAndNot(values, notValues, destinationIp);
  if (key === "destination.port") return valuesAndNot(values, notValues, destinationPort);
  if (key === "connection.sni") {
    return valuesAndNot(values, notValues, (name) => ({
      rule: { case: "requestedServerName", value: textMatch(name) },
    }));
  }
  const [, filter, name] = /^experimental\.(envoy\.filters\.[^[]+)\[(.+)\]$/.exec(key) ?? [];
  if (filter === undefined || name === undefined) return [];
  return listAndNot(values, notValues, (all) => ({
    rule: { case: "metadata", value: filterMetadataMatch(filter, name, all) },
  }));
}

function header(name: string, value: string, ignoreCase: boolean): Permission {
  return { rule: { case: "header", value: headerMatch(name, value, { ignoreCase }) } };
}

function destinationPort(port: string): Permission {
  return { rule: { case: "destinationPort", value: Number(port) } };
}

function destinationIp(block: string): Permission {
  const { address: addressPrefix, prefixLength } = splitIpBlock(block)!;
  return { rule: { case: "destinationIp", value: { addressPrefix, prefixLen: prefixLength } } };
}

type Lists = readonly string[] | undefined;

function valuesAndNot(values: Lists, notValues: Lists, make: (value: string) => Permission): readonly Permission[] {
  return listAndNot(values, notValues, (all) => ({ rule: { case: "orRules", value: { rules: all.map(make) } } }));
}

function listAndNot(
  values: Lists = [],
  notValues: Lists = [],
  make: (values: readonly string[]) => Permission,
): readonly Permission[] {
  return [
    ...(values.length === 0 ? [] : [make(values)]),
    ...(notValues.length === 0 ? [] : [{ rule: { case: "notRule" as const, value: make(notValues) } }]),
  ];
}

function allOf(rules: readonly Permission[]): Permission {
  const any: Permission = { rule: { case: "any", value: true } };
  return { rule: { case: "andRules", value: { rules: rules.length === 0 ? [any] : [...rules] } } };
}
