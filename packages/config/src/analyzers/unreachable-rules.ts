/**
 * IST0130, IST0131: routes and conditions that no request ever reaches, because one before them takes all that they could
 * take.
 */
import { isDeepStrictEqual } from "node:util";
import type { StringMatch } from "../kinds/http-route.ts";
import type { HttpMatch } from "../resource.ts";
import type { Analyzer } from "./analyzer.ts";

/** Conditions compared for one VirtualService; each is compared with all before it. */
const maxComparedMatches = 1000;

interface Condition {
  readonly route: number;
  readonly index: number;
  readonly match: HttpMatch;
}

export const unreachableRules: Analyzer = {
  name: "unreachable-rules",
  codes: ["IST0130", "IST0131"],
  *run(mesh) {
    for (const resource of mesh.list("VirtualService")) {
      const earlier: Condition[] = [];
      for (const [route, { match }] of (resource.spec.http ?? []).entries()) {
        const conditions: readonly HttpMatch[] = match === undefined || match.length === 0 ? [{}] : match;
        const covers = conditions.map((condition) => earlier.find((known) => isCovered(condition, known.match)));
        const path = ["spec", "http", route];
        if (covers.every((cover) => cover !== undefined)) {
          yield {
            code: "IST0130",
            resource,
            path,
            message: `no request reaches this route: http[${covers[0]!.route}] takes all of them`,
            suggestion: "Put the narrower route first, or remove this one.",
          };
        } else {
          for (const [index, cover] of covers.entries()) {
            if (cover === undefined) continue;
            yield {
              code: "IST0131",
              resource,
              path: [...path, "match", index],
              message: `this condition adds nothing: http[${cover.route}] takes its requests before`,
              suggestion: "Remove the condition.",
            };
          }
        }
        earlier.push(...conditions.map((condition, index) => ({ route, index, match: condition })));
        if (earlier.length > maxComparedMatches) break;
      }
    }
  },
};

/** Whether every request that `later` takes is one that `earlier` takes: each condition of `earlier` follows from `later`. */
function isCovered(later: HttpMatch, earlier: HttpMatch): boolean {
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
