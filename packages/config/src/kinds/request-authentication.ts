/** RequestAuthentication: which tokens a workload accepts. Field list of Istio 1.31 (security.istio.io). */
import { boolean, defaulted, deprecated, list, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { duration, headerName, nonEmpty, quote } from "../schema/formats.ts";
import type { Format } from "../schema/formats.ts";
import { parseKeySet } from "../rules/json-web-key-set.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, securityApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { oneTarget, policyTargetFields } from "./policy-target.ts";

const jwksUrl: Format = {
  name: "URL",
  description: "an http or https URL without credentials",
  check: (value) => {
    const url = URL.parse(value);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
      return `${quote(value)} is not an http or https URL`;
    }
    return url.username === "" && url.password === "" ? undefined : "a URL with a user name or password is not taken";
  },
  jsonSchema: { minLength: 1 },
};

const keySet: Format = {
  name: "JSON Web Key Set",
  description: "public keys as JSON (RFC 7517)",
  check: (value) => {
    const parsed = parseKeySet(value);
    return "problem" in parsed ? parsed.problem : undefined;
  },
  jsonSchema: { minLength: 1 },
};

/** Istio writes claims into headers of plain names alone. */
const plainHeaderName: Format = {
  name: "header name",
  description: 'letters, digits, "-" and "_"',
  check: (value) =>
    /^[-_A-Za-z0-9]+$/.test(value) ? undefined : `${quote(value)} is not a name of letters, digits, "-" and "_"`,
  jsonSchema: { pattern: "^[-_A-Za-z0-9]+$" },
};

const cookieName: Format = {
  name: "cookie name",
  description: "a token (RFC 6265 §4.1.1)",
  check: (value) => (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(value) ? undefined : `${quote(value)} is not a cookie name`),
  jsonSchema: { minLength: 1 },
};

const jwtRuleFields = {
  issuer: defaulted(string(), "", "Who made the token (`iss`); anybody whose signature is good, when missing."),
  audiences: optional(
    list(string(nonEmpty)),
    "Names of which one has to be in the token's `aud`; not looked at when missing.",
  ),
  jwksUri: optional(
    string(jwksUrl),
    "Where the issuer publishes its keys; its discovery document says it when missing.",
  ),
  jwks_uri: deprecated(optional(string(jwksUrl), "The older spelling of jwksUri."), "jwksUri"),
  jwks: optional(string(keySet), "The issuer's keys themselves."),
  fromHeaders: optional(
    list(
      object({
        name: required(string(headerName), "Header with the token."),
        prefix: optional(string(), "What stands before the token, as `Bearer `, with its space."),
      }),
    ),
    "Headers that may hold the token. Without any place: `Authorization: Bearer`, and the parameter access_token.",
  ),
  fromParams: optional(list(string(nonEmpty)), "Query parameters that may hold the token."),
  fromCookies: optional(list(string(cookieName)), "Cookies that may hold the token."),
  outputPayloadToHeader: optional(string(headerName), "Header that gets the token's payload, in base64url."),
  forwardOriginalToken: optional(boolean(), "Leave the token in the request that goes on; it is taken out otherwise."),
  outputClaimToHeaders: optional(
    list(
      object({
        header: required(string(plainHeaderName), "Header that gets the claim."),
        claim: required(string(nonEmpty), "The claim; parts of a nested one are joined by `.`."),
      }),
    ),
    "Claims that become headers.",
  ),
  spaceDelimitedClaims: optional(
    list(string(nonEmpty)),
    "Claims that hold several words, which policies see as a list, as those of `scope` and `permission`.",
  ),
  timeout: optional(string(duration), "How long fetching the keys may take; 5s when missing."),
} as const;

function oneKeySource(rule: ObjectValue<typeof jwtRuleFields>, report: Report): void {
  const uri = rule.jwksUri ?? rule.jwks_uri;
  if (rule.jwks !== undefined && uri !== undefined) {
    report({ path: ["jwks"], message: 'only one of "jwks" and "jwksUri" is possible' });
  }
  if (rule.issuer === "" && uri === undefined) {
    report({ message: '"issuer" or "jwksUri" is needed', suggestion: "The issuer is what tokens say in `iss`." });
  } else if (rule.jwks === undefined && uri === undefined && jwksUrl.check(rule.issuer) !== undefined) {
    report({
      code: "IST0133",
      path: ["issuer"],
      message: `${quote(rule.issuer)} is no URL, so nothing says where its keys are: none of its tokens is taken`,
      suggestion: 'Add "jwksUri" or "jwks".',
    });
  }
}

/**
 * Envoy's filter takes such claims at the top of a token alone. A policy that denies one of the words would deny
 * nothing.
 */
function claimsAtTheTop({ spaceDelimitedClaims = [] }: ObjectValue<typeof jwtRuleFields>, report: Report): void {
  spaceDelimitedClaims.forEach((claim, index) => {
    if (!claim.includes(".")) return;
    report({
      code: "TUL0001",
      severity: "error",
      path: ["spaceDelimitedClaims", index],
      message: `the words of ${quote(claim)}, a claim inside another, cannot be told apart yet, and policies on them would not hold: the resource is refused`,
    });
  });
}

export const requestAuthentication = defineKind({
  kind: "RequestAuthentication",
  plural: "requestauthentications",
  shortNames: ["ra"],
  apiVersions: securityApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Which tokens a workload accepts.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: defaulted(
        object(
          {
            ...policyTargetFields,
            jwtRules: optional(
              list(object(jwtRuleFields, { rules: [oneKeySource, claimsAtTheTop] })),
              "One entry for each issuer.",
            ),
          },
          { rules: [oneTarget] },
        ),
        {},
        "The tokens.",
      ),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
