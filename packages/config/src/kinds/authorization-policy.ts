/** AuthorizationPolicy: who may do what with a workload. Field list of Istio 1.31 (security.istio.io). */
import { defaulted, enumeration, list, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import type { Path } from "../findings/places.ts";
import { nonEmpty, quote } from "../schema/formats.ts";
import type { Format } from "../schema/formats.ts";
import { ipBlock, isPathTemplate, namespacePattern, pathPattern } from "./authorization-formats.ts";
import { portNumber, serviceAccountReference, trustDomainPattern } from "./authorization-formats.ts";
import { conditionKey, formatOfKey, isFilterKey } from "./authorization-keys.ts";
import { dryRunIsClear } from "./dry-run.ts";
import { defineKind, securityApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { oneTarget, policyTargetFields } from "./policy-target.ts";

const values = (format: Format) => list(string(format));

const sourceFields = {
  principals: optional(values(nonEmpty), "Identities of callers: `cluster.local/ns/<namespace>/sa/<account>`."),
  notPrincipals: optional(values(nonEmpty), "Identities of callers that the rule is not about."),
  requestPrincipals: optional(values(nonEmpty), "`<issuer>/<subject>` of the request's token."),
  notRequestPrincipals: optional(values(nonEmpty), "`<issuer>/<subject>` of tokens that the rule is not about."),
  namespaces: optional(values(namespacePattern), "Namespaces of callers."),
  notNamespaces: optional(values(namespacePattern), "Namespaces of callers that the rule is not about."),
  serviceAccounts: optional(values(serviceAccountReference), "Service accounts of callers."),
  notServiceAccounts: optional(values(serviceAccountReference), "Service accounts that the rule is not about."),
  trustDomains: optional(values(trustDomainPattern), "Trust domains of callers."),
  notTrustDomains: optional(values(trustDomainPattern), "Trust domains of callers that the rule is not about."),
  ipBlocks: optional(values(ipBlock), "Addresses that connections come from."),
  notIpBlocks: optional(values(ipBlock), "Addresses of connections that the rule is not about."),
  remoteIpBlocks: optional(values(ipBlock), "Addresses of clients, as X-Forwarded-For tells them."),
  notRemoteIpBlocks: optional(values(ipBlock), "Addresses of clients that the rule is not about."),
} as const;

const operationFields = {
  hosts: optional(values(nonEmpty), "Hosts of requests, in any case."),
  notHosts: optional(values(nonEmpty), "Hosts that the rule is not about."),
  ports: optional(values(portNumber), "Ports that the workload listens on."),
  notPorts: optional(values(portNumber), "Ports that the rule is not about."),
  methods: optional(values(nonEmpty), "Methods of requests."),
  notMethods: optional(values(nonEmpty), "Methods that the rule is not about."),
  paths: optional(values(pathPattern), "Paths of requests, without their query."),
  notPaths: optional(values(pathPattern), "Paths that the rule is not about."),
} as const;

const conditionFields = {
  key: required(string(conditionKey), "What the condition is about."),
  values: optional(values(nonEmpty), "Values of which one has to be there."),
  notValues: optional(values(nonEmpty), "Values of which none may be there."),
} as const;

const ruleFields = {
  from: optional(
    list(
      object({
        source: required(
          object(sourceFields, { rules: [someField("source"), accountsAlone, starsAtTheEnds] }),
          "Who calls.",
        ),
      }),
    ),
    "Sources, of which one has to match; anyone when missing.",
  ),
  to: optional(
    list(
      object({
        operation: required(
          object(operationFields, { rules: [someField("operation"), starsAtTheEnds] }),
          "What is asked.",
        ),
      }),
    ),
    "Operations, of which one has to match; anything when missing.",
  ),
  when: optional(
    list(object(conditionFields, { rules: [valuesFitKey] })),
    "Further conditions, which all have to hold.",
  ),
} as const;

const policyFields = {
  ...policyTargetFields,
  action: optional(
    enumeration(["ALLOW", "DENY", "AUDIT", "CUSTOM"]),
    "What happens to requests that a rule matches; ALLOW when missing.",
  ),
  provider: optional(
    object({ name: required(string(nonEmpty), "Name of the provider.") }),
    "The authorizer of the action CUSTOM.",
  ),
  rules: optional(list(object(ruleFields)), "Rules, of which one has to match. Without any, no request is matched."),
} as const;

type Lists = Readonly<Record<string, readonly string[] | undefined>>;

/** Istio refuses a source or operation that says nothing: it would match everything. */
function someField(name: string) {
  return (lists: Lists, report: Report): void => {
    const isSaid = Object.values(lists).some((each) => (each ?? []).length > 0);
    if (!isSaid) report({ message: `the ${name} says nothing`, suggestion: `Leave it out to mean every ${name}.` });
  };
}

function accountsAlone(source: ObjectValue<typeof sourceFields>, report: Report): void {
  if (source.serviceAccounts === undefined && source.notServiceAccounts === undefined) return;
  for (const name of ["principals", "notPrincipals", "namespaces", "notNamespaces"] as const) {
    if (source[name] === undefined) continue;
    report({ path: [name], message: `"${name}" cannot stand beside "serviceAccounts"` });
  }
}

function starsAtTheEnds(lists: Lists, report: Report): void {
  for (const [name, each] of Object.entries(lists)) {
    // Namespaces and trust domains take a star anywhere.
    if (/(namespaces|trustDomains)$/i.test(name)) continue;
    each?.forEach((value, index) => checkStar(value, [name, index], report));
  }
}

function checkStar(value: string, path: Path, report: Report): void {
  if (isPathTemplate(value) || value === "*") return;
  const rest = value.startsWith("*") ? value.slice(1) : value.replace(/\*$/, "");
  if (!rest.includes("*")) return;
  report({
    code: "IST0133",
    path,
    message: `in ${quote(value)} a "*" stands for itself: it means any text only at one end, the beginning or the end`,
    suggestion: 'Write a path template ("{*}" for a segment), or several values.',
  });
}

function valuesFitKey(condition: ObjectValue<typeof conditionFields>, report: Report): void {
  const { key } = condition;
  if ((condition.values ?? []).length === 0 && (condition.notValues ?? []).length === 0) {
    report({ message: `the condition on ${key} has neither values nor notValues` });
  }
  const format = formatOfKey(key);
  for (const name of ["values", "notValues"] as const) {
    condition[name]?.forEach((value, index) => {
      const message = format?.check(value);
      if (message !== undefined) report({ path: [name, index], message });
      else if (format === nonEmpty) checkStar(value, [name, index], report);
    });
  }
  if (isFilterKey(key)) {
    report({
      code: "IST0133",
      path: ["key"],
      message: `${key}: no filter of the mesh writes it, so no value is ever there`,
    });
  }
}

function actionFits(spec: ObjectValue<typeof policyFields>, report: Report): void {
  const { action = "ALLOW", provider, rules } = spec;
  if (action !== "CUSTOM" && provider !== undefined) {
    report({ path: ["provider"], message: `a provider is for the action CUSTOM, and the action is ${action}` });
  }
  if (action === "CUSTOM" && provider === undefined) {
    report({ message: "the action CUSTOM needs a provider", suggestion: 'Add "provider" with its name.' });
  }
  if ((action === "CUSTOM" || action === "DENY") && (rules ?? []).length === 0) {
    report({
      message: `the action ${action} without rules has no effect`,
      suggestion: 'Write "rules: [{}]" for everything.',
    });
  }
}

export const authorizationPolicy = defineKind({
  kind: "AuthorizationPolicy",
  plural: "authorizationpolicies",
  shortNames: ["ap"],
  apiVersions: securityApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Who may do what with a workload.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: defaulted(
        object(policyFields, { rules: [actionFits, oneTarget] }),
        {},
        "The policy; nothing is allowed when it is empty.",
      ),
    },
    { unread: ["status"], rules: [dryRunIsClear] },
  ),
});
