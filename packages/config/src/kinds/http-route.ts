/** One HTTP route of a VirtualService: conditions, destinations, and what happens to a request on its way. */
import {
  boolean,
  deprecated,
  enumeration,
  integer,
  list,
  map,
  notYet,
  number,
  object,
  optional,
  required,
  string,
} from "../schema/schema.ts";
import { parseDuration } from "../schema/duration.ts";
import type { Infer, ObjectValue, Report } from "../schema/schema.ts";
import type { Format } from "../schema/formats.ts";
import {
  destinationHost,
  dnsLabel,
  dnsSubdomain,
  duration,
  gatewayReference,
  headerMatchName,
  headerName,
  nonEmpty,
  queryParameterName,
  regex,
  regexOrAny,
  retryOn,
  subsetName,
} from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";

const port = integer({ minimum: 1, maximum: 65_535 });
const labels = map(string(labelValue), labelKey);
const percentage = object({ value: optional(number({ minimum: 0, maximum: 100 }), "Percent, with fractions.") });

const stringMatchFields = {
  exact: optional(string(), "The whole value."),
  prefix: optional(string(nonEmpty), "How the value begins."),
  regex: optional(string(regex), "RE2 expression that the whole value matches."),
} as const;

/** A path may begin with nothing: Envoy's route match takes an empty prefix, its string matchers refuse one. */
export const uriMatch = object(
  { ...stringMatchFields, prefix: optional(string(), "How the path begins.") },
  { atMostOne: [["exact", "prefix", "regex"]] },
);
const stringMatch = object(stringMatchFields, { atMostOne: [["exact", "prefix", "regex"]] });
/** Empty means that the header or parameter is there, whatever its value. */
const presenceOrStringMatch = object(stringMatchFields, { atMostOne: [["exact", "prefix", "regex"]] });

/** The same, where Istio also takes the regular expression `*` for "whatever value". */
const absentMatch = object(
  { ...stringMatchFields, regex: optional(string(regexOrAny), "RE2 expression that the whole value matches, or `*`.") },
  { atMostOne: [["exact", "prefix", "regex"]] },
);

export type StringMatch = Infer<typeof presenceOrStringMatch>;

/** Empty is as good as missing. */
const subsetOrNone: Format = { ...subsetName, check: (value) => (value === "" ? undefined : subsetName.check(value)) };

export const destination = object({
  host: required(
    string(destinationHost),
    "Service: a short name (in the namespace of the VirtualService) or a full one.",
  ),
  subset: optional(string(subsetOrNone), "Subset that a DestinationRule of the service names."),
  port: optional(
    object({ number: required(port, "Port of the Service.") }),
    "Needed when the Service has several ports.",
  ),
});

const headerOperations = object({
  set: notYet(map(string(), headerName), "Headers to replace."),
  add: notYet(map(string(), headerName), "Headers to append."),
  remove: notYet(list(string(headerName)), "Headers to take away."),
});

const headers = object({
  request: notYet(headerOperations, "Changes to the request."),
  response: notYet(headerOperations, "Changes to the response."),
});

const httpMatchFields = {
  name: optional(string(), "Name of the condition; it follows the route's name in logs."),
  uri: optional(uriMatch, "Path."),
  scheme: optional(stringMatch, "Scheme."),
  method: optional(stringMatch, "Method."),
  authority: optional(stringMatch, "Host header."),
  headers: optional(map(presenceOrStringMatch, headerMatchName), "Headers, all of which have to match."),
  port: optional(port, "Port that the client asked for."),
  sourceLabels: optional(labels, "Labels of the client."),
  gateways: optional(list(string(gatewayReference)), "Gateways that the condition is for."),
  queryParams: optional(
    map(presenceOrStringMatch, queryParameterName),
    "Query parameters, all of which have to match.",
  ),
  ignoreUriCase: optional(boolean(), "Path without regard to case."),
  withoutHeaders: optional(map(absentMatch, headerMatchName), "Headers that may not match."),
  sourceNamespace: optional(string(dnsLabel), "Namespace of the client."),
  statPrefix: notYet(string(), "Prefix of the statistics of the route."),
} as const;

const httpMatch = object(httpMatchFields);

/** Empty texts count as missing. */
function saysOneOf<N extends string>(what: string, names: readonly N[]) {
  return (value: Readonly<Partial<Record<N, unknown>>>, report: Report): void => {
    if (names.some((name) => value[name] !== undefined && value[name] !== "")) return;
    report({ message: `the ${what} changes nothing: it needs one of ${names.join(", ")}` });
  };
}

const redirect = object(
  {
    uri: notYet(string(), "New path."),
    authority: notYet(string(), "New host."),
    port: notYet(port, "New port."),
    derivePort: notYet(enumeration(["FROM_PROTOCOL_DEFAULT", "FROM_REQUEST_PORT"]), "Where the new port comes from."),
    scheme: notYet(string(), "New scheme."),
    redirectCode: notYet(integer({ minimum: 300, maximum: 399 }), "Status of the answer; 301 when missing."),
    prefixRewrite: notYet(string(), "New prefix."),
  },
  {
    atMostOne: [
      ["port", "derivePort"],
      ["uri", "prefixRewrite"],
    ],
    rules: [saysOneOf("redirect", ["uri", "prefixRewrite", "authority", "port", "derivePort", "scheme"])],
  },
);

const directResponse = object({
  status: required(integer({ minimum: 200, maximum: 600 }), "Status of the answer."),
  body: notYet(
    object(
      { string: notYet(string(), "Text."), bytes: notYet(string(), "Base64.") },
      { exactlyOne: [["string", "bytes"]] },
    ),
    "Body of the answer.",
  ),
});

const rewrite = object(
  {
    uri: notYet(string(), "New path, or new prefix where a prefix matched."),
    authority: notYet(string(), "New host."),
    uriRegexRewrite: notYet(
      object({
        match: required(string(regex), "What is replaced."),
        rewrite: required(string(nonEmpty), "What takes its place; \\1 is the first group."),
      }),
      "New path by a regular expression.",
    ),
  },
  { atMostOne: [["uri", "uriRegexRewrite"]], rules: [saysOneOf("rewrite", ["uri", "uriRegexRewrite", "authority"])] },
);

const retriesFields = {
  attempts: optional(
    integer({ minimum: 0, maximum: 2_147_483_647 }),
    "Most retries after the first try; 0 switches them off.",
  ),
  perTryTimeout: optional(string(duration), "Time limit of each try."),
  retryOn: optional(string(retryOn), "Conditions under which a try is repeated."),
  retryRemoteLocalities: notYet(boolean(), "Whether a retry may go to other localities."),
  backoff: notYet(string(duration), "Base of the time between tries."),
  retryIgnorePreviousHosts: notYet(boolean(), "Whether a retry avoids hosts tried before."),
} as const;

function noConditionsWithoutAttempts(retries: ObjectValue<typeof retriesFields>, report: Report): void {
  const isConfigured =
    retries.perTryTimeout !== undefined ||
    (retries.retryOn ?? "") !== "" ||
    retries.retryRemoteLocalities !== undefined;
  if ((retries.attempts ?? 0) === 0 && isConfigured) {
    report({
      message: "retries are configured, but attempts is 0 or missing, which switches retries off",
      suggestion: 'Set "attempts", or remove the other settings.',
    });
  }
}

const faultFields = {
  delay: notYet(
    object(
      {
        percent: deprecated(notYet(integer({ minimum: 0, maximum: 100 }), "Share of requests."), "percentage.value"),
        fixedDelay: notYet(string(duration), "Delay."),
        exponentialDelay: notYet(string(duration), "Mean of an exponential delay."),
        percentage: notYet(percentage, "Share of requests."),
      },
      { atMostOne: [["fixedDelay", "exponentialDelay"]] },
    ),
    "Requests are delayed.",
  ),
  abort: notYet(
    object(
      {
        httpStatus: notYet(integer({ minimum: 200, maximum: 600 }), "Status of the answer."),
        grpcStatus: notYet(string(nonEmpty), "gRPC status of the answer."),
        http2Error: notYet(string(nonEmpty), "HTTP/2 error."),
        percentage: notYet(percentage, "Share of requests."),
      },
      { atMostOne: [["httpStatus", "grpcStatus", "http2Error"]] },
    ),
    "Requests are answered with an error.",
  ),
} as const;

function faultIsMade({ delay, abort }: ObjectValue<typeof faultFields>, report: Report): void {
  if (delay === undefined && abort === undefined) report({ message: 'a fault needs "delay" or "abort"' });
  if (delay?.exponentialDelay !== undefined) {
    report({
      path: ["delay", "exponentialDelay"],
      message: "no proxy delays like that",
      suggestion: 'Use "fixedDelay".',
    });
  }
  if (abort?.http2Error !== undefined) {
    report({
      path: ["abort", "http2Error"],
      message: "no proxy ends requests like that",
      suggestion: 'Use "httpStatus" or "grpcStatus".',
    });
  }
}

const fault = object(faultFields, { rules: [faultIsMade] });

/** As Envoy's `*` has it, and Istio's check. */
const corsMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "*"] as const;

const corsPolicyFields = {
  allowOrigin: deprecated(
    optional(list(string()), "Allowed origins as a whole, where `allowOrigins` is missing."),
    "allowOrigins",
  ),
  allowOrigins: optional(
    list(stringMatch),
    "Allowed origins, such as `https://shop.example`; `*` as an exact one is any.",
  ),
  allowMethods: optional(list(enumeration(corsMethods)), "Methods that a preflight is told; `*` is what it asks for."),
  allowHeaders: optional(list(string(headerName)), "Headers that a preflight is told; `*` is what it asks for."),
  exposeHeaders: optional(list(string(headerName)), "Headers of answers that scripts may read."),
  maxAge: optional(string(duration), "How long the answer to a preflight may be kept, in whole seconds."),
  allowCredentials: optional(boolean(), "Whether pages may send cookies and other credentials."),
  unmatchedPreflights: optional(
    enumeration(["UNSPECIFIED", "FORWARD", "IGNORE"]),
    "Preflights of other origins: `FORWARD` asks the service, as when missing; `IGNORE` answers without allowing.",
  ),
} as const;

function originsAndAge({ allowOrigins = [], maxAge }: ObjectValue<typeof corsPolicyFields>, report: Report): void {
  allowOrigins.forEach(({ exact = "", prefix, regex: expression }, index) => {
    if (exact !== "" || prefix !== undefined || expression !== undefined) return;
    report({ path: ["allowOrigins", index], message: "the match fits no origin" });
  });
  if (maxAge !== undefined && (parseDuration(maxAge) ?? 0) % 1_000 !== 0) {
    report({ path: ["maxAge"], message: "browsers are told whole seconds" });
  }
}

const corsPolicy = object(corsPolicyFields, { rules: [originsAndAge] });

const weightedDestinationFields = {
  destination: required(destination, "Where requests go."),
  weight: optional(integer({ minimum: 0, maximum: 2_147_483_647 }), "Share, relative to the other destinations."),
  headers: notYet(headers, "Header changes for this destination."),
} as const;

/** Of actions: going on without them would send requests where nobody wanted them. */
const answers501 = "the route answers 501";

const httpRouteFields = {
  name: optional(string(), "Name of the route, for logs."),
  match: optional(list(httpMatch), "Conditions, one of which has to match; every request when missing."),
  route: optional(list(object(weightedDestinationFields)), "Where requests go."),
  redirect: notYet(redirect, "Answer with a redirect.", answers501),
  directResponse: notYet(directResponse, "Answer without a service.", answers501),
  delegate: notYet(
    object({ name: optional(string(dnsSubdomain), "Name."), namespace: optional(string(dnsLabel), "Namespace.") }),
    "Another VirtualService that goes on from here.",
    answers501,
  ),
  rewrite: notYet(rewrite, "Changes to path and host."),
  timeout: optional(string(duration), "Time limit of the whole request, retries included; none when missing."),
  retries: optional(object(retriesFields, { rules: [noConditionsWithoutAttempts] }), "Retries."),
  fault: notYet(fault, "Faults made on purpose."),
  mirror: notYet(destination, "Service that gets a copy of requests."),
  mirrors: notYet(
    list(
      object({ destination: required(destination, "Service."), percentage: notYet(percentage, "Share of requests.") }),
    ),
    "Services that get a copy of requests.",
  ),
  mirrorPercent: deprecated(
    notYet(integer({ minimum: 0, maximum: 100 }), "Share of mirrored requests."),
    "mirrorPercentage",
  ),
  mirror_percent: deprecated(
    notYet(integer({ minimum: 0, maximum: 4_294_967_295 }), "An older spelling of mirrorPercent."),
    "mirrorPercentage",
  ),
  mirrorPercentage: notYet(percentage, "Share of mirrored requests."),
  corsPolicy: optional(corsPolicy, "What pages of other origins may do."),
  headers: notYet(headers, "Header changes."),
} as const;

function weightsAddUp(route: ObjectValue<typeof httpRouteFields>, report: Report): void {
  const destinations = route.route ?? [];
  if (destinations.length < 2) return;
  const total = destinations.reduce((sum, { weight = 0 }) => sum + weight, 0);
  if (total === 0) {
    report({
      path: ["route"],
      message: `the ${destinations.length} destinations have a total weight of 0`,
      suggestion: "Give the destinations weights, for example 90 and 10.",
    });
  }
}

function hasOneAction(route: ObjectValue<typeof httpRouteFields>, report: Report): void {
  const actions = [
    (route.route?.length ?? 0) > 0 ? "route" : undefined,
    route.redirect === undefined ? undefined : "redirect",
    route.directResponse === undefined ? undefined : "directResponse",
    route.delegate === undefined ? undefined : "delegate",
  ].filter((action) => action !== undefined);
  if (actions.length === 0) {
    report({ message: "the HTTP route leads nowhere", suggestion: 'Add "route" with at least one destination.' });
  } else if (actions.length > 1) {
    report({
      path: [actions[1]!],
      message: `the HTTP route has ${actions.join(" and ")}; only one of them is possible`,
    });
  }
}

export const httpRoute = object(httpRouteFields, {
  rules: [hasOneAction, weightsAddUp],
  atMostOne: [
    ["mirror", "mirrors"],
    ["redirect", "fault"],
    ["redirect", "rewrite"],
    ["directResponse", "fault"],
    ["directResponse", "rewrite"],
  ],
});
