// What a request has to bring, as a tree of providers (JwtRequirement).
import {
  type JwtProvider,
  type JwtRequirement,
  type JwtRequirementOrList,
} from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import { compileAudienceCheck } from "./audience-check.ts";
import { type Authentication, type TokenRules, authenticate, authenticateEach } from "./authenticate.ts";
import type { Provider } from "./compile-provider.ts";
import type { JwtFailure } from "./jwt-failure.ts";
import { TokenLocations } from "./token-locations.ts";

/** Undefined when the request brings what is asked for. */
export type Requirement = (authentication: Authentication) => JwtFailure | undefined;

export type Providers = ReadonlyMap<string, Provider>;

export function compileRequirement(
  message: JwtRequirement,
  providers: Providers,
  place: Place,
  problems: Problems,
): Requirement {
  const type = message.requiresType;
  switch (type.case) {
    case "providerName":
      return requireProvider(type.value, [], providers, place.field("provider_name"), problems);
    case "providerAndAudiences": {
      const { providerName, audiences } = type.value;
      const at = place.field("provider_and_audiences").field("provider_name");
      return requireProvider(providerName, audiences, providers, at, problems);
    }
    case "requiresAny":
      return requireAny(type.value, providers, place.field("requires_any"), problems);
    case "requiresAll": {
      const at = place.field("requires_all");
      const all = compileList(type.value.requirements, providers, at, problems);
      return (authentication) => {
        for (const requirement of all) {
          const failure = requirement(authentication);
          if (failure !== undefined) return failure;
        }
        return undefined;
      };
    }
    case "allowMissing":
      return allowMissing(providers);
    case "allowMissingOrFailed":
      return allowMissingOrFailed(providers);
    case "extractOnlyWithoutValidation":
      problems.error(place.field("extract_only_without_validation"), "this field is not supported");
      return () => "missing";
    case undefined:
      return () => undefined;
  }
}

function compileList(
  requirements: readonly JwtRequirement[],
  providers: Providers,
  place: Place,
  problems: Problems,
): readonly Requirement[] {
  // Envoy's validation: a list of one is a mistake.
  if (requirements.length < 2) problems.error(place.field("requirements"), "value must contain at least 2 item(s)");
  return requirements.map((one, index) =>
    compileRequirement(one, providers, place.field("requirements", index), problems),
  );
}

function requireProvider(
  name: string,
  audiences: readonly string[],
  providers: Providers,
  place: Place,
  problems: Problems,
): Requirement {
  const provider = providers.get(name);
  if (provider === undefined) {
    problems.error(place, `Required provider ['${name}'] is not configured.`);
    return () => "missing";
  }
  const rules: TokenRules = {
    locations: new TokenLocations([provider.message]),
    providerFor: () => provider,
    ...(audiences.length > 0 && { areAudiencesAllowed: compileAudienceCheck(audiences) }),
  };
  return (authentication) => authenticate(rules, authentication);
}

/** The first that is met; else the failure that says most. */
function requireAny(
  message: JwtRequirementOrList,
  providers: Providers,
  place: Place,
  problems: Problems,
): Requirement {
  const cases = new Set(message.requirements.map(({ requiresType }) => requiresType.case));
  const all = compileList(message.requirements, providers, place, problems);
  // What may be missing changes the outcome of the others and is not asked by itself, unless it stands alone.
  const asked = all.filter((_, index) => {
    const { case: type } = message.requirements[index]!.requiresType;
    return type !== "allowMissing" && type !== "allowMissingOrFailed";
  });
  const toleratesFailure = cases.has("allowMissingOrFailed");
  if (asked.length === 0) return toleratesFailure ? allowMissingOrFailed(providers) : allowMissing(providers);
  const toleratesMissing = cases.has("allowMissing");
  return (authentication) => {
    let worst: JwtFailure = "missing";
    for (const requirement of asked) {
      const failure = requirement(authentication);
      if (failure === undefined) return undefined;
      if ((failure !== "missing" && failure !== "unknownIssuer") || worst === "missing") worst = failure;
    }
    if (toleratesFailure) return undefined;
    return worst === "missing" && toleratesMissing ? undefined : worst;
  };
}

function allowMissing(providers: Providers): Requirement {
  const rules = rulesOfAll(providers);
  return (authentication) => authenticateEach(rules, authentication);
}

function allowMissingOrFailed(providers: Providers): Requirement {
  const rules = rulesOfAll(providers);
  return (authentication) => {
    authenticateEach(rules, authentication);
    return undefined;
  };
}

/** Tokens of any provider; one without an issuer takes those whose issuer nobody names. */
function rulesOfAll(providers: Providers): TokenRules {
  const byIssuer = new Map<string, Provider>();
  const messages: JwtProvider[] = [];
  for (const provider of providers.values()) {
    messages.push(provider.message);
    if (!byIssuer.has(provider.message.issuer)) byIssuer.set(provider.message.issuer, provider);
  }
  return {
    locations: new TokenLocations(messages),
    providerFor: (issuer) => byIssuer.get(issuer) ?? byIssuer.get(""),
  };
}
