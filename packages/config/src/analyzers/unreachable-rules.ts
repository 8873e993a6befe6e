/**
 * IST0130, IST0131: routes and conditions that no request ever reaches, because one before them takes all that they
 * could take.
 */
import { isDeepStrictEqual } from "node:util";
import type { StringMatch } from "../kinds/http-route.ts";
import { hostCovers } from "../rules/resolve-host.ts";
import type { HttpMatch, TcpMatch, TlsMatch, VirtualService } from "../kinds/resource.ts";
import type { Analyzer, Discovery } from "./analyzer.ts";

/** Conditions compared for one list of routes; each is compared with all before it. */
const maxComparedMatches = 1000;
/** Pairs of server names that are compared for two conditions. */
const maxComparedNames = 10_000;

type Protocol = "http" | "tls" | "tcp";
type Match = HttpMatch | TlsMatch | TcpMatch;

interface Condition {
  readonly route: number;
  readonly index: number;
  readonly match: Match;
}

const taken: Readonly<Record<Protocol, string>> = { http: "request", tls: "connection", tcp: "connection" };

export const unreachableRules: Analyzer = {
  name: "unreachable-rules",
  codes: ["IST0130", "IST0131"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      for (const protocol of ["http", "tls", "tcp"] as const) yield* unreachable(resource, protocol);
    }
  },
};

function* unreachable(resource: VirtualService, protocol: Protocol): Generator<Discovery> {
  const earlier: Condition[] = [];
  for (const [route, { match }] of (resource.spec[protocol] ?? []).entries()) {
    const conditions: readonly Match[] = match === undefined || match.length === 0 ? [{}] : match;
    const covers = conditions.map((condition, index) => {
      if (earlier.length >= maxComparedMatches) return undefined;
      const cover = earlier.find((known) => isCovered(condition, known.match));
      earlier.push({ route, index, match: condition });
      return cover;
    });
    const path = ["spec", protocol, route];
    if (covers.every((cover) => cover !== undefined)) {
      yield {
        code: "IST0130",
        resource,
        path,
        message: `no ${taken[protocol]} reaches this route: ${protocol}[${covers[0]!.route}] takes all of them`,
        suggestion: "Put the narrower route first, or remove this one.",
      };
    } else {
      for (const [index, cover] of covers.entries()) {
        if (cover === undefined) continue;
        const where = `${protocol}[${cover.route}]${cover.route === route ? `.match[${cover.index}]` : ""}`;
        yield {
          code: "IST0131",
          resource,
          path: [...path, "match", index],
          message: `this condition adds nothing: ${where} takes its ${taken[protocol]}s before`,
          suggestion: "Remove the condition.",
        };
      }
    }
    if (earlier.length >= maxComparedMatches) break;
  }
}

function isCovered(later: Match, earlier: Match): boolean {
  if (!("sniHosts" in earlier)) return isHttpCovered(later, earlier);
  if (!("sniHosts" in later)) return false;
  const { sniHosts, ...others } = earlier;
  if (later.sniHosts.length * sniHosts.length > maxComparedNames) return false;
  return (
    later.sniHosts.every((host) => sniHosts.some((known) => hostCovers(known, host))) && isHttpCovered(later, others)
  );
}

/**
 * Whether every request that `later` takes is one that `earlier` takes: each condition of `earlier` follows from
 * `later`.
 */
function isHttpCovered(later: HttpMatch, earlier: HttpMatch): boolean {
  return (Object.keys(earlier) as (keyof HttpMatch)[]).every((field) => {
    // Names of conditions change nothing.
    if (field === "name" || field === "statPrefix") return true;
    if (field === "uri" || field === "method" || field === "authority") {
      const ignoreCase = earlier.ignoreUriCase !== later.ignoreUriCase;
      return !ignoreCase && isTextCovered(later[field], earlier[field]!);
    }
    if (field === "headers") {
      return Object.entries(earlier.headers ?? {}).every(([name, wanted]) => {
        const own = later.headers?.[name];
        return own !== undefined && isTextCovered(own, wanted);
      });
    }
    return isDeepStrictEqual(later[field], earlier[field]);
  });
}

function isTextCovered(later: StringMatch | undefined, earlier: StringMatch): boolean {
  if (later === undefined) return false;
  // The empty match of a header means that it is there.
  if (Object.keys(earlier).length === 0) return true;
  if (earlier.prefix !== undefined) {
    return (later.exact ?? later.prefix)?.startsWith(earlier.prefix) ?? false;
  }
  return isDeepStrictEqual(later, earlier);
}
