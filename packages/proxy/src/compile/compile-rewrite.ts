// Rewrites of path and authority by a route (RouteAction.prefix_rewrite, regex_rewrite, host_rewrite_*).
import type { RouteAction as RouteActionMessage } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead } from "../http/message.ts";
import { rewriteAuthority } from "../route/rewrite-authority.ts";
import { checkHeaderText } from "../fields/check-header-text.ts";
import { pathWithoutQuery } from "../fields/compile-route-match.ts";
import { compileSubstitution } from "../fields/matchers/regex.ts";
import type { Place, Problems } from "../fields/problems.ts";

export type Rewrite = (request: RequestHead) => void;

/** The new path of a request; `prefixLength` as in CompiledRouteMatch. */
export function prefixReplacement(prefixLength: number | undefined, replacement: string): (path: string) => string {
  return (path) => {
    const length = prefixLength ?? pathWithoutQuery(path).length;
    return replacement + path.slice(length);
  };
}

/** Substitutes in the path alone; the query stays. */
export function pathSubstitution(substitute: (text: string) => string): (path: string) => string {
  return (path) => {
    const bare = pathWithoutQuery(path);
    return substitute(bare) + path.slice(bare.length);
  };
}

export function compilePathRewrite(
  action: RouteActionMessage,
  prefixLength: number | undefined,
  place: Place,
  problems: Problems,
): Rewrite | undefined {
  if (action.prefixRewrite !== "" && action.regexRewrite !== undefined) {
    problems.error(place, "Specify only one of prefix_rewrite, regex_rewrite or path_rewrite_policy");
  }
  let newPath: ((path: string) => string) | undefined;
  if (action.prefixRewrite !== "") {
    const replacement = checkHeaderText(action.prefixRewrite, place.field("prefix_rewrite"), problems);
    newPath = prefixReplacement(prefixLength, replacement);
  } else if (action.regexRewrite !== undefined) {
    newPath = pathSubstitution(compileSubstitution(action.regexRewrite, place.field("regex_rewrite"), problems));
  }
  if (newPath === undefined) return undefined;
  const rewritten = newPath;
  return (request) => {
    // Envoy keeps what the client asked for, and its access log prints it.
    request.headers.set("x-envoy-original-path", request.path);
    request.path = rewritten(request.path);
  };
}

export function compileHostRewrite(
  action: RouteActionMessage,
  weightedLiteral: string,
  place: Place,
  problems: Problems,
): Rewrite | undefined {
  const append = action.appendXForwardedHost;
  if (weightedLiteral !== "") {
    const literal = checkHeaderText(weightedLiteral, place.field("host_rewrite_literal"), problems);
    return (request) => rewriteAuthority(request, literal, append);
  }
  const specifier = action.hostRewriteSpecifier;
  switch (specifier.case) {
    case "hostRewriteLiteral": {
      const literal = checkHeaderText(specifier.value, place.field("host_rewrite_literal"), problems);
      return literal === "" ? undefined : (request) => rewriteAuthority(request, literal, append);
    }
    case "hostRewriteHeader": {
      const name = specifier.value.toLowerCase();
      return (request) => {
        const value = request.headers.get(name);
        if (value !== undefined && value !== "") rewriteAuthority(request, value, append);
      };
    }
    case "hostRewritePathRegex": {
      const substitute = compileSubstitution(specifier.value, place.field("host_rewrite_path_regex"), problems);
      return (request) => rewriteAuthority(request, substitute(pathWithoutQuery(request.path)), append);
    }
    default:
      return undefined;
  }
}
