// Redirects of a route (config.route.v3.RedirectAction), and the one to https that `require_tls` asks for.
import {
  type RedirectAction as RedirectMessage,
  RedirectAction_RedirectResponseCode as Code,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead } from "../http/message.ts";
import { checkHeaderText } from "../fields/check-header-text.ts";
import { pathSubstitution, prefixReplacement } from "./compile-rewrite.ts";
import { compileSubstitution } from "../fields/matchers/regex.ts";
import type { Place, Problems } from "../fields/problems.ts";

const statuses: Readonly<Record<number, number>> = {
  [Code.MOVED_PERMANENTLY]: 301,
  [Code.FOUND]: 302,
  [Code.SEE_OTHER]: 303,
  [Code.TEMPORARY_REDIRECT]: 307,
  [Code.PERMANENT_REDIRECT]: 308,
};

export interface CompiledRedirect {
  readonly status: number;
  location(request: RequestHead): string;
}

/**
 * The authority without its port where a new port or a change of scheme makes that one wrong (Envoy:
 * processRequestHost).
 */
function redirectedHost(request: RequestHead, newScheme: string, newPort: string): string {
  const host = request.authority;
  const colon = host.startsWith("[") ? host.lastIndexOf("]:") + 1 : host.lastIndexOf(":");
  if (colon <= 0) return host;
  const port = host.slice(colon);
  const isDefaultOfOld =
    (request.scheme === "https" && port === ":443") || (request.scheme === "http" && port === ":80");
  return newPort !== "" || (newScheme !== request.scheme && isDefaultOfOld) ? host.slice(0, colon) : host;
}

function withoutQuery(path: string): string {
  const query = path.indexOf("?");
  return query < 0 ? path : path.slice(0, query);
}

function compilePath(
  message: RedirectMessage,
  prefixLength: number | undefined,
  place: Place,
  problems: Problems,
): (path: string) => string {
  const strip = message.stripQuery;
  const keep = (path: string): string => (strip ? withoutQuery(path) : path);
  const specifier = message.pathRewriteSpecifier;
  switch (specifier.case) {
    case "pathRedirect": {
      const target = checkHeaderText(specifier.value, place.field("path_redirect"), problems);
      // A query of path_redirect's own wins over the request's, and strip_query does not touch it.
      if (target.includes("?") || strip) return () => target;
      return (path) => (path.includes("?") ? target + path.slice(path.indexOf("?")) : target);
    }
    case "prefixRewrite": {
      const replacement = checkHeaderText(specifier.value, place.field("prefix_rewrite"), problems);
      const replace = prefixReplacement(prefixLength, replacement);
      return (path) => keep(replace(path));
    }
    case "regexRewrite": {
      const substitute = pathSubstitution(compileSubstitution(specifier.value, place.field("regex_rewrite"), problems));
      return (path) => keep(substitute(path));
    }
    case "pathRewrite":
      problems.error(place.field("path_rewrite"), "this field is not supported");
      return keep;
    case undefined:
      return keep;
  }
}

export function compileRedirect(
  message: RedirectMessage,
  prefixLength: number | undefined,
  place: Place,
  problems: Problems,
): CompiledRedirect {
  const scheme = message.schemeRewriteSpecifier;
  const fixedScheme =
    scheme.case === "schemeRedirect"
      ? checkHeaderText(scheme.value, place.field("scheme_redirect"), problems)
      : scheme.case === "httpsRedirect" && scheme.value
        ? "https"
        : undefined;
  const port = message.portRedirect === 0 ? "" : `:${message.portRedirect}`;
  const newPath = compilePath(message, prefixLength, place, problems);
  const host = checkHeaderText(message.hostRedirect, place.field("host_redirect"), problems);
  const status = statuses[message.responseCode];
  if (status === undefined) problems.error(place.field("response_code"), `unknown value ${message.responseCode}`);
  return {
    status: status ?? 301,
    location: (request) => {
      const newScheme = fixedScheme ?? request.scheme;
      const newHost = host === "" ? redirectedHost(request, newScheme, port) : host;
      return `${newScheme}://${newHost}${port}${newPath(request.path)}`;
    },
  };
}

/** VirtualHost.require_tls: everything but the scheme stays. */
export function httpsLocation(request: RequestHead): string {
  return `https://${redirectedHost(request, "https", "")}${request.path}`;
}
