/** The kinds of Istio's know every field of Istio 1.25, and the kinds go by all their names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../schema/schema.ts";
import { findKind, kindDefinitions, kinds } from "./kinds.ts";
import type { Kind } from "./kinds.ts";

/** Field names of Istio 1.25's API (networking.istio.io/v1), by the object that holds them. */
const istioFields: readonly { readonly kind: Kind; readonly at: string; readonly fields: string }[] = [
  { kind: "VirtualService", at: "spec", fields: "hosts,gateways,http,tls,tcp,exportTo" },
  {
    kind: "VirtualService",
    at: "spec.http",
    fields:
      "name,match,route,redirect,directResponse,delegate,rewrite,timeout,retries,fault,mirror,mirrors,mirrorPercent,mirrorPercentage,corsPolicy,headers",
  },
  {
    kind: "VirtualService",
    at: "spec.http.match",
    fields:
      "name,uri,scheme,method,authority,headers,port,sourceLabels,gateways,queryParams,ignoreUriCase,withoutHeaders,sourceNamespace,statPrefix",
  },
  { kind: "VirtualService", at: "spec.http.match.uri", fields: "exact,prefix,regex" },
  { kind: "VirtualService", at: "spec.http.route", fields: "destination,weight,headers" },
  { kind: "VirtualService", at: "spec.http.route.destination", fields: "host,subset,port" },
  { kind: "VirtualService", at: "spec.http.route.headers.request", fields: "set,add,remove" },
  { kind: "VirtualService", at: "spec.http.redirect", fields: "uri,authority,port,derivePort,scheme,redirectCode" },
  { kind: "VirtualService", at: "spec.http.directResponse.body", fields: "string,bytes" },
  { kind: "VirtualService", at: "spec.http.rewrite", fields: "uri,authority,uriRegexRewrite" },
  { kind: "VirtualService", at: "spec.http.rewrite.uriRegexRewrite", fields: "match,rewrite" },
  { kind: "VirtualService", at: "spec.http.delegate", fields: "name,namespace" },
  { kind: "VirtualService", at: "spec.http.mirrors", fields: "destination,percentage" },
  { kind: "VirtualService", at: "spec.http.retries", fields: "attempts,perTryTimeout,retryOn,retryRemoteLocalities" },
  { kind: "VirtualService", at: "spec.http.fault.delay", fields: "percent,fixedDelay,exponentialDelay,percentage" },
  { kind: "VirtualService", at: "spec.http.fault.abort", fields: "httpStatus,grpcStatus,http2Error,percentage" },
  {
    kind: "VirtualService",
    at: "spec.http.corsPolicy",
    fields:
      "allowOrigin,allowOrigins,allowMethods,allowHeaders,exposeHeaders,maxAge,allowCredentials,unmatchedPreflights",
  },
  {
    kind: "VirtualService",
    at: "spec.tls.match",
    fields: "sniHosts,destinationSubnets,port,sourceLabels,gateways,sourceNamespace",
  },
  {
    kind: "VirtualService",
    at: "spec.tcp.match",
    fields: "destinationSubnets,port,sourceLabels,gateways,sourceNamespace,sourceSubnet",
  },
  { kind: "DestinationRule", at: "spec", fields: "host,trafficPolicy,subsets,exportTo,workloadSelector" },
  { kind: "DestinationRule", at: "spec.subsets", fields: "name,labels,trafficPolicy" },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy",
    fields: "loadBalancer,connectionPool,outlierDetection,tls,portLevelSettings,tunnel,proxyProtocol",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.portLevelSettings",
    fields: "port,loadBalancer,connectionPool,outlierDetection,tls",
  },
  { kind: "DestinationRule", at: "spec.trafficPolicy.tunnel", fields: "protocol,targetHost,targetPort" },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.loadBalancer",
    fields: "simple,consistentHash,localityLbSetting,warmupDurationSecs,warmup",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.loadBalancer.consistentHash",
    fields: "httpHeaderName,httpCookie,useSourceIp,httpQueryParameterName,ringHash,maglev,minimumRingSize",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.loadBalancer.localityLbSetting",
    fields: "distribute,failover,failoverPriority,enabled",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.loadBalancer.warmup",
    fields: "duration,minimumPercent,aggression",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.connectionPool.tcp",
    fields: "maxConnections,connectTimeout,tcpKeepalive,maxConnectionDuration,idleTimeout",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.connectionPool.tcp.tcpKeepalive",
    fields: "probes,time,interval",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.connectionPool.http",
    fields:
      "http1MaxPendingRequests,http2MaxRequests,maxRequestsPerConnection,maxRetries,idleTimeout,h2UpgradePolicy,useClientProtocol,maxConcurrentStreams",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.outlierDetection",
    fields:
      "consecutiveErrors,splitExternalLocalOriginErrors,consecutiveLocalOriginFailures,consecutiveGatewayErrors,consecutive5xxErrors,interval,baseEjectionTime,maxEjectionPercent,minHealthPercent",
  },
  {
    kind: "DestinationRule",
    at: "spec.trafficPolicy.tls",
    fields:
      "mode,clientCertificate,privateKey,caCertificates,credentialName,subjectAltNames,sni,insecureSkipVerify,caCrl",
  },
  { kind: "Gateway", at: "spec", fields: "selector,servers" },
  { kind: "Gateway", at: "spec.servers", fields: "port,bind,hosts,tls,defaultEndpoint,name" },
  { kind: "Gateway", at: "spec.servers.port", fields: "number,protocol,name,targetPort" },
  {
    kind: "Gateway",
    at: "spec.servers.tls",
    fields:
      "httpsRedirect,mode,serverCertificate,privateKey,caCertificates,caCrl,credentialName,subjectAltNames,verifyCertificateSpki,verifyCertificateHash,minProtocolVersion,maxProtocolVersion,cipherSuites",
  },
  { kind: "AuthorizationPolicy", at: "spec", fields: "selector,targetRef,targetRefs,action,provider,rules" },
  { kind: "AuthorizationPolicy", at: "spec.selector", fields: "matchLabels" },
  { kind: "AuthorizationPolicy", at: "spec.targetRefs", fields: "group,kind,name,namespace" },
  { kind: "AuthorizationPolicy", at: "spec.provider", fields: "name" },
  { kind: "AuthorizationPolicy", at: "spec.rules", fields: "from,to,when" },
  {
    kind: "AuthorizationPolicy",
    at: "spec.rules.from.source",
    fields:
      "principals,notPrincipals,requestPrincipals,notRequestPrincipals,namespaces,notNamespaces,serviceAccounts,notServiceAccounts,ipBlocks,notIpBlocks,remoteIpBlocks,notRemoteIpBlocks",
  },
  {
    kind: "AuthorizationPolicy",
    at: "spec.rules.to.operation",
    fields: "hosts,notHosts,ports,notPorts,methods,notMethods,paths,notPaths",
  },
  { kind: "AuthorizationPolicy", at: "spec.rules.when", fields: "key,values,notValues" },
  { kind: "RequestAuthentication", at: "spec", fields: "selector,targetRef,targetRefs,jwtRules" },
  {
    kind: "RequestAuthentication",
    at: "spec.jwtRules",
    fields:
      "issuer,audiences,jwksUri,jwks,fromHeaders,fromParams,fromCookies,outputPayloadToHeader,forwardOriginalToken,outputClaimToHeaders,timeout",
  },
  { kind: "RequestAuthentication", at: "spec.jwtRules.fromHeaders", fields: "name,prefix" },
  { kind: "RequestAuthentication", at: "spec.jwtRules.outputClaimToHeaders", fields: "header,claim" },
  { kind: "PeerAuthentication", at: "spec", fields: "selector,mtls,portLevelMtls" },
  { kind: "PeerAuthentication", at: "spec.mtls", fields: "mode" },
];

function nodeAt(kind: Kind, path: string): Node {
  let node: Node = kindDefinitions[kind].schema.node;
  for (const name of path.split(".")) {
    if (node.type === "list") node = node.items;
    assert.ok(node.type === "object" && node.fields[name] !== undefined, `${kind} ${path}: ${name}`);
    node = node.fields[name].node;
  }
  return node.type === "list" ? node.items : node;
}

for (const { kind, at, fields } of istioFields) {
  test(`${kind} ${at} knows Istio's fields`, () => {
    const node = nodeAt(kind, at);
    assert.equal(node.type, "object");
    const known = node.type === "object" ? Object.keys(node.fields) : [];
    assert.deepEqual(
      fields.split(",").filter((name) => !known.includes(name)),
      [],
    );
  });
}

type IstioKind =
  | "Gateway"
  | "VirtualService"
  | "DestinationRule"
  | "AuthorizationPolicy"
  | "RequestAuthentication"
  | "PeerAuthentication";

/** The fields of the mesh's own kinds that have an effect; every other one warns. */
const implementedFields: Readonly<Record<IstioKind, readonly string[]>> = {
  Gateway: [
    "selector",
    "servers",
    "servers.hosts",
    "servers.port",
    "servers.port.name",
    "servers.port.number",
    "servers.port.protocol",
    "servers.tls",
    ...["caCertificates", "caCrl", "cipherSuites", "credentialName", "httpsRedirect"].map(inServerTls),
    ...["maxProtocolVersion", "minProtocolVersion", "mode", "privateKey", "serverCertificate"].map(inServerTls),
    ...["subjectAltNames", "verifyCertificateHash", "verifyCertificateSpki"].map(inServerTls),
  ],
  VirtualService: [
    "gateways",
    "hosts",
    "http",
    "http.match",
    "http.match.authority",
    "http.match.authority.exact",
    "http.match.authority.prefix",
    "http.match.authority.regex",
    "http.match.headers",
    "http.match.headers.exact",
    "http.match.headers.prefix",
    "http.match.headers.regex",
    "http.match.method",
    "http.match.method.exact",
    "http.match.method.prefix",
    "http.match.method.regex",
    "http.match.name",
    "http.match.uri",
    "http.match.uri.exact",
    "http.match.uri.prefix",
    "http.match.uri.regex",
    "http.name",
    "http.retries",
    "http.retries.attempts",
    "http.retries.perTryTimeout",
    "http.retries.retryOn",
    "http.route",
    "http.route.destination",
    "http.route.destination.host",
    "http.route.destination.port",
    "http.route.destination.port.number",
    "http.route.destination.subset",
    "http.route.weight",
    "http.timeout",
    ...layer4Fields("tcp"),
    ...layer4Fields("tls", "sniHosts"),
  ],
  DestinationRule: [
    "host",
    "subsets",
    "subsets.labels",
    "subsets.name",
    ...trafficPolicyFields("subsets.trafficPolicy"),
    ...trafficPolicyFields("trafficPolicy"),
  ],
  AuthorizationPolicy: [
    "action",
    "provider",
    "provider.name",
    "rules",
    "rules.from",
    "rules.from.source",
    ...["ipBlocks", "namespaces", "notIpBlocks", "notNamespaces", "notPrincipals", "notRemoteIpBlocks"].map(inSource),
    ...["notRequestPrincipals", "notServiceAccounts", "principals", "remoteIpBlocks"].map(inSource),
    ...["requestPrincipals", "serviceAccounts"].map(inSource),
    "rules.to",
    "rules.to.operation",
    ...["hosts", "methods", "notHosts", "notMethods", "notPaths", "notPorts", "paths", "ports"].map(inOperation),
    "rules.when",
    "rules.when.key",
    "rules.when.notValues",
    "rules.when.values",
    "selector",
    "selector.matchLabels",
  ],
  RequestAuthentication: [
    "jwtRules",
    "jwtRules.audiences",
    "jwtRules.forwardOriginalToken",
    "jwtRules.fromCookies",
    "jwtRules.fromHeaders",
    "jwtRules.fromHeaders.name",
    "jwtRules.fromHeaders.prefix",
    "jwtRules.fromParams",
    "jwtRules.issuer",
    "jwtRules.jwks",
    "jwtRules.jwksUri",
    "jwtRules.outputClaimToHeaders",
    "jwtRules.outputClaimToHeaders.claim",
    "jwtRules.outputClaimToHeaders.header",
    "jwtRules.outputPayloadToHeader",
    "jwtRules.timeout",
    "selector",
    "selector.matchLabels",
  ],
  PeerAuthentication: ["mtls", "mtls.mode", "portLevelMtls", "portLevelMtls.mode", "selector", "selector.matchLabels"],
};

function trafficPolicyFields(at: string): readonly string[] {
  const ports = `${at}.portLevelSettings`;
  const tls = ["caCertificates", "caCrl", "clientCertificate", "credentialName", "insecureSkipVerify", "mode"];
  const perPort = (base: string): readonly string[] => {
    const below = (name: string): string => `${base}.${name}`;
    const ejection = (name: string): string => below(`outlierDetection.${name}`);
    return [
      ...["", ".loadBalancer", ".loadBalancer.simple", ".tls"].map((name) => base + name),
      ...[...tls, "privateKey", "sni", "subjectAltNames"].map((name) => `${base}.tls.${name}`),
      ...["connectionPool", "connectionPool.http", "connectionPool.tcp", "outlierDetection"].map(below),
      ...["http1MaxPendingRequests", "http2MaxRequests", "idleTimeout", "maxRequestsPerConnection", "maxRetries"].map(
        (name) => below(`connectionPool.http.${name}`),
      ),
      ...["connectTimeout", "idleTimeout", "maxConnectionDuration", "maxConnections", "tcpKeepalive"].map((name) =>
        below(`connectionPool.tcp.${name}`),
      ),
      ...["interval", "probes", "time"].map((name) => below(`connectionPool.tcp.tcpKeepalive.${name}`)),
      ...["baseEjectionTime", "consecutive5xxErrors", "consecutiveErrors", "consecutiveGatewayErrors"].map(ejection),
      ...["consecutiveLocalOriginFailures", "interval", "maxEjectionPercent", "minHealthPercent"].map(ejection),
      ejection("splitExternalLocalOriginErrors"),
    ];
  };
  const budget = ["retryBudget", "retryBudget.minRetryConcurrency", "retryBudget.percent"].map(
    (name) => `${at}.${name}`,
  );
  return [...perPort(at), ...perPort(ports), ...budget, `${ports}.port`, `${ports}.port.number`].sort();
}

function inServerTls(name: string): string {
  return `servers.tls.${name}`;
}

function layer4Fields(at: string, ...further: readonly string[]): readonly string[] {
  const match = ["gateways", "port", ...further].map((name) => `match.${name}`);
  const destination = ["", ".host", ".port", ".port.number", ".subset"].map((name) => `route.destination${name}`);
  return [at, ...["match", ...match, "route", ...destination, "route.weight"].map((name) => `${at}.${name}`)];
}

function inSource(name: string): string {
  return `rules.from.source.${name}`;
}

function inOperation(name: string): string {
  return `rules.to.operation.${name}`;
}

function implementedBelow(node: Node, path: string): readonly string[] {
  if (node.type === "list") return implementedBelow(node.items, path);
  if (node.type === "map") return implementedBelow(node.values, path);
  if (node.type !== "object") return [];
  return Object.entries(node.fields).flatMap(([name, field]) => {
    if (field.status !== "implemented") return [];
    const below = path === "" ? name : `${path}.${name}`;
    return [below, ...implementedBelow(field.node, below)];
  });
}

for (const kind of Object.keys(implementedFields) as readonly IstioKind[]) {
  test(`${kind}: the fields that have an effect`, () => {
    assert.deepEqual([...implementedBelow(nodeAt(kind, "spec"), "")].sort(), implementedFields[kind]);
  });
}

test("kinds go by kind, plural and short name", () => {
  for (const kind of kinds) {
    const { plural, shortNames } = kindDefinitions[kind];
    for (const name of [kind, kind.toLowerCase(), plural, ...shortNames]) assert.equal(findKind(name), kind, name);
  }
  assert.equal(findKind("x"), undefined);
  const names = kinds.flatMap((kind) => [kindDefinitions[kind].plural, ...kindDefinitions[kind].shortNames]);
  assert.equal(new Set(names).size, names.length);
});
