// The routes of one virtual host in their order. A long list is looked up by path, so that the ten-thousandth route
// costs what the first one does; the order still decides.
import type { RequestHead } from "../http/message.ts";
import { type MatchContext, firstSegment, pathWithoutQuery } from "../fields/compile-route-match.ts";
import type { CompiledRoute } from "./compile-route.ts";

/** Up to here a plain walk is quicker than three look-ups. */
export const maxWalkedRoutes = 16;

const none: readonly number[] = [];

export class RouteList {
  readonly #routes: readonly CompiledRoute[];
  readonly #positions: PathPositions | undefined;

  constructor(routes: readonly CompiledRoute[]) {
    this.#routes = routes;
    this.#positions = routes.length > maxWalkedRoutes ? new PathPositions(routes) : undefined;
  }

  /** The first route that matches. */
  find(request: RequestHead, context: MatchContext): CompiledRoute | undefined {
    if (this.#positions !== undefined) return this.#positions.find(this.#routes, request, context);
    for (const route of this.#routes) if (route.matches(request, context)) return route;
    return undefined;
  }
}

/** Ascending: routes for one path, routes below one first segment, and all the others. */
class PathPositions {
  readonly #byPath = new Map<string, number[]>();
  readonly #bySegment = new Map<string, number[]>();
  readonly #others: number[] = [];

  constructor(routes: readonly CompiledRoute[]) {
    for (const [position, { pathIndex }] of routes.entries()) {
      if (pathIndex === undefined) this.#others.push(position);
      else add(pathIndex.kind === "exact" ? this.#byPath : this.#bySegment, pathIndex.text, position);
    }
  }

  find(routes: readonly CompiledRoute[], request: RequestHead, context: MatchContext): CompiledRoute | undefined {
    const exact = this.#byPath.get(pathWithoutQuery(request.path)) ?? none;
    const below = this.#bySegment.get(firstSegment(request.path)) ?? none;
    const others = this.#others;
    let [i, j, k] = [0, 0, 0];
    for (;;) {
      const position = Math.min(exact[i] ?? Infinity, below[j] ?? Infinity, others[k] ?? Infinity);
      if (position === Infinity) return undefined;
      if (position === exact[i]) i += 1;
      else if (position === below[j]) j += 1;
      else k += 1;
      const route = routes[position]!;
      if (route.matches(request, context)) return route;
    }
  }
}

function add(map: Map<string, number[]>, key: string, position: number): void {
  const positions = map.get(key);
  if (positions === undefined) map.set(key, [position]);
  else positions.push(position);
}
