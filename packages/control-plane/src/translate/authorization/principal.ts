// Whom a rule is about → Envoy's principals: each source of `from`, with the conditions of `when` that are about the
// caller, the request's token and its headers.
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AuthorizationCondition,
  type AuthorizationRule,
  type AuthorizationSource,
  splitIpBlock,
} from "@tulle/config";
import { claimPath, headerOfKey } from "@tulle/config";
import type { PrincipalSchema } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import {
  anyText,
  claimListMatch,
  claimMatch,
  exactMatch,
  headerMatch,
  identityMatch,
  type MetadataMatch,
  prefixMatch,
  regexMatch,
  type StringMatch,
  suffixMatch,
} from "./text-match.ts";

export type Principal = MessageInitShape<typeof PrincipalSchema>;

type Lists = readonly string[] | undefined;

/** Some of the values, as one principal. */
type MakePrincipal = (values: readonly string[]) => Principal;

/**
 * One for each entry of `from`; any of them is enough. `namespace` is the policy's, where short account names are
 * looked up.
 */
export function principals(rule: AuthorizationRule, namespace: string): Principal[] {
  const conditions = (rule.when ?? []).flatMap((condition) => conditionPrincipals(condition, namespace));
  const sources = rule.from ?? [];
  if (sources.length === 0) return [allOf(conditions)];
  return sources.map(({ source }) => allOf([...sourcePrincipals(source, namespace), ...conditions]));
}

function sourcePrincipals(source: AuthorizationSource, namespace: string): readonly Principal[] {
  const accounts = each((account) => serviceAccount(account, namespace));
  return [
    ...listAndNot(source.principals, source.notPrincipals, each(identity)),
    ...listAndNot(source.requestPrincipals, source.notRequestPrincipals, each(requestPrincipal)),
    ...listAndNot(source.serviceAccounts, source.notServiceAccounts, accounts),
    ...listAndNot(source.namespaces, source.notNamespaces, each(callerNamespace)),
    ...listAndNot(source.trustDomains, source.notTrustDomains, each(trustDomain)),
    ...listAndNot(source.remoteIpBlocks, source.notRemoteIpBlocks, each(remoteIp)),
    ...listAndNot(source.ipBlocks, source.notIpBlocks, each(directRemoteIp)),
  ];
}

function conditionPrincipals(condition: AuthorizationCondition, namespace: string): readonly Principal[] {
  const make = makerOfKey(condition.key, namespace);
  return make === undefined ? [] : listAndNot(condition.values, condition.notValues, make);
}

/** Undefined for keys that are no matter of the caller's. */
function makerOfKey(key: string, namespace: string): MakePrincipal | undefined {
  switch (key) {
    case "source.ip":
      return each(directRemoteIp);
    case "remote.ip":
      return each(remoteIp);
    case "source.namespace":
      return each(callerNamespace);
    case "source.serviceAccount":
      return each((account) => serviceAccount(account, namespace));
    case "source.principal":
      return each(identity);
    case "source.trustDomain":
      return each(trustDomain);
    case "request.auth.principal":
      return each(requestPrincipal);
    case "request.auth.audiences":
      return (values) => metadata(claimListMatch(["aud"], values));
    case "request.auth.presenter":
      return (values) => metadata(claimListMatch(["azp"], values));
    default:
      break;
  }
  const header = headerOfKey(key);
  if (header !== undefined) {
    return each((value) => ({ identifier: { case: "header", value: headerMatch(header, value) } }));
  }
  const claim = claimPath(key);
  return claim === undefined ? undefined : (values) => metadata(claimListMatch(claim, values));
}

function authenticated(principalName: StringMatch): Principal {
  return { identifier: { case: "authenticated", value: { principalName } } };
}

function identity(value: string): Principal {
  return authenticated(identityMatch(value));
}

function callerNamespace(value: string): Principal {
  return authenticated(regexMatch(`.*/ns/${value.replaceAll("*", ".*")}/.*`));
}

/** A `*` stays before the slash that ends a trust domain. */
function trustDomain(value: string): Principal {
  return authenticated(regexMatch(`spiffe://${value.replaceAll(".", String.raw`\.`).replaceAll("*", "[^/]*")}/.*`));
}

/** Other pairs may stand between and behind those two in an identity (Istio: serviceAccountRegex). */
function serviceAccount(value: string, namespace: string): Principal {
  const slash = value.indexOf("/");
  const owner = slash === -1 ? namespace : value.slice(0, slash);
  const name = value.slice(slash + 1).replaceAll(".", String.raw`\.`);
  return authenticated(regexMatch(`spiffe://.+/ns/${owner}/(.+/|)sa/${name}(/.+)?`));
}

/**
 * `<issuer>/<subject>`; the issuer may be a URL, so that the last slash parts them (Istio: requestPrincipalGenerator).
 */
function requestPrincipal(value: string): Principal {
  const { issuer, subject } = principalParts(value);
  const claims = [metadata(claimMatch("iss", issuer)), metadata(claimMatch("sub", subject))];
  return { identifier: { case: "andIds", value: { ids: claims } } };
}

function principalParts(value: string): { readonly issuer: StringMatch; readonly subject: StringMatch } {
  const slash = value.lastIndexOf("/");
  const issuer = slash === -1 ? value : value.slice(0, slash);
  const subject = slash === -1 ? "" : value.slice(slash + 1);
  if (value === "*") return { issuer: anyText, subject: anyText };
  if (value.startsWith("*")) {
    if (slash === -1) return { issuer: anyText, subject: suffixMatch(value.slice(1)) };
    return { issuer: issuer === "*" ? anyText : suffixMatch(issuer.slice(1)), subject: exactMatch(subject) };
  }
  if (value.endsWith("*")) {
    if (slash === -1) return { issuer: prefixMatch(value.slice(0, -1)), subject: anyText };
    return { issuer: exactMatch(issuer), subject: subject === "*" ? anyText : prefixMatch(subject.slice(0, -1)) };
  }
  return { issuer: exactMatch(issuer), subject: exactMatch(subject) };
}

function metadata(value: MetadataMatch): Principal {
  return { identifier: { case: "metadata", value } };
}

function directRemoteIp(block: string): Principal {
  return { identifier: { case: "directRemoteIp", value: cidr(block) } };
}

function remoteIp(block: string): Principal {
  return { identifier: { case: "remoteIp", value: cidr(block) } };
}

function cidr(block: string): { readonly addressPrefix: string; readonly prefixLen: number } {
  const { address, prefixLength } = splitIpBlock(block)!;
  return { addressPrefix: address, prefixLen: prefixLength };
}

function each(make: (value: string) => Principal): MakePrincipal {
  return (values) => ({ identifier: { case: "orIds", value: { ids: values.map(make) } } });
}

function listAndNot(values: Lists = [], notValues: Lists = [], make: MakePrincipal): readonly Principal[] {
  return [
    ...(values.length === 0 ? [] : [make(values)]),
    ...(notValues.length === 0 ? [] : [{ identifier: { case: "notId" as const, value: make(notValues) } }]),
  ];
}

function allOf(ids: readonly Principal[]): Principal {
  const any: Principal = { identifier: { case: "any", value: true } };
  return { identifier: { case: "andIds", value: { ids: ids.length === 0 ? [any] : [...ids] } } };
}
