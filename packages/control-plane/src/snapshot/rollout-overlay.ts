// The weights of roll-outs, laid over what users wrote of routes: no resource is changed, and with the roll-out its
// weights are gone. What cannot be laid over says why, and the rule stays as it was written.
import { isDeepStrictEqual } from "node:util";
import {
  type HeaderRouteMatch,
  hostCovers,
  type HttpMatch,
  type HttpRoute,
  isHttp,
  passesConnections,
} from "@tulle/config";
import type { RolloutVersion, TcpRoute, WeightedDestination } from "@tulle/config";
import type {
  MeshDestinationRule,
  MeshService,
  MeshSnapshot,
  MeshSubset,
  MeshVirtualService,
} from "./mesh-snapshot.ts";

/** Where a roll-out stands, as far as routes are concerned. */
export interface RolloutOverlay {
  /** Of the Rollout. */
  readonly name: string;
  readonly namespace: string;
  /** Full name of the Service. */
  readonly host: string;
  readonly stable: RolloutVersion;
  readonly canary: RolloutVersion;
  readonly virtualService?: { readonly name: string; readonly routes?: readonly string[] };
  /** Percent of the requests that go to the canary. */
  readonly weight: number;
  /** Requests that go to the canary whatever the weight. */
  readonly headerMatch?: HeaderRouteMatch;
}

export type OverlaidParts = Pick<MeshSnapshot, "services" | "virtualServices" | "destinationRules">;

/** Envoy adds the weights of a route up in 32 bits (envoy.config.route.v3.WeightedCluster). */
const maxTotalWeight = 4_294_967_295;
const percent = 100;

export function overlayRollouts(parts: OverlaidParts, overlays: readonly RolloutOverlay[]): OverlaidParts {
  return overlays.reduce((before, overlay) => layOver(before, overlay).parts, parts);
}

/** What keeps a roll-out from being laid over the mesh as it is; undefined when nothing does. */
export function overlayProblem(parts: OverlaidParts, overlay: RolloutOverlay): string | undefined {
  return layOver(parts, overlay).problem;
}

interface Laid {
  readonly parts: OverlaidParts;
  readonly problem?: string;
}

/**
 * Nothing is sent to a version that is not there: where the canary's is gone, the stable one has everything; where both
 * are, the rule is as it was written.
 */
function layOver(parts: OverlaidParts, overlay: RolloutOverlay): Laid {
  const service = parts.services.find(({ hostname }) => hostname === overlay.host);
  if (service === undefined) return { parts, problem: `there is no Service ${overlay.host}` };
  const missing = (version: RolloutVersion): string | undefined =>
    version.subset === undefined || subsetOf(parts.destinationRules, service, version.subset) !== undefined
      ? undefined
      : `no DestinationRule of ${overlay.host} names the subset ${version.subset}`;
  const needsCanary = overlay.weight > 0 || overlay.headerMatch !== undefined;
  const noCanary = needsCanary ? missing(overlay.canary) : undefined;
  const { headerMatch: _none, ...withoutHeader } = overlay;
  const possible: RolloutOverlay = noCanary === undefined ? overlay : { ...withoutHeader, weight: 0 };
  const noStable = possible.weight < percent ? missing(possible.stable) : undefined;
  if (noStable !== undefined) return { parts, problem: noStable };
  const named = withSubsets(parts, service, possible);
  const laid = layOverRoutes(named, service, possible);
  const problem = noCanary ?? laid.problem;
  return problem === undefined ? laid : { parts: laid.parts, problem };
}

/** As clients find it: a rule of the very host stands before one with a wildcard. */
function subsetOf(rules: readonly MeshDestinationRule[], service: MeshService, name: string): MeshSubset | undefined {
  const covering = rules.filter(({ host }) => hostCovers(host, service.hostname));
  const exact = covering.filter(({ host }) => host === service.hostname);
  return (exact.length > 0 ? exact : covering).flatMap(({ subsets }) => subsets).find((subset) => subset.name === name);
}

/** Labels of a version's pods, besides those that the Service selects by; undefined where no rule says. */
export function versionLabels(
  { services, destinationRules }: OverlaidParts,
  host: string,
  { subset, labels }: RolloutVersion,
): Readonly<Record<string, string>> | undefined {
  const service = services.find(({ hostname }) => hostname === host);
  if (labels !== undefined || service === undefined || subset === undefined) return labels;
  return subsetOf(destinationRules, service, subset)?.labels;
}

/** Of the version in clusters' names. */
export function subsetName(
  { name, stable, canary }: Pick<RolloutOverlay, "name" | "stable" | "canary">,
  which: "stable" | "canary",
): string {
  return (which === "stable" ? stable : canary).subset ?? `${name}-${which}`;
}

/** A version that is named by labels becomes a subset of every rule of its host. */
function withSubsets(parts: OverlaidParts, service: MeshService, overlay: RolloutOverlay): OverlaidParts {
  const made = (["stable", "canary"] as const).flatMap((which): readonly MeshSubset[] => {
    const { labels } = overlay[which];
    return labels === undefined ? [] : [{ name: subsetName(overlay, which), labels }];
  });
  if (made.length === 0) return parts;
  const { destinationRules: rules } = parts;
  const isOfHost = ({ host }: MeshDestinationRule): boolean => host === service.hostname;
  if (rules.some(isOfHost)) {
    const more = rules.map((rule) => (isOfHost(rule) ? { ...rule, subsets: [...rule.subsets, ...made] } : rule));
    return { ...parts, destinationRules: more };
  }
  // It stands before a rule with a wildcard, whose policy goes on to hold.
  const covering = rules
    .filter(({ host }) => hostCovers(host, service.hostname))
    .toSorted((a, b) => b.host.length - a.host.length)[0];
  const { namespace, hostname: host } = service;
  const policy = covering?.trafficPolicy === undefined ? {} : { trafficPolicy: covering.trafficPolicy };
  const own = { name: overlay.name, namespace, host, ...policy, subsets: made };
  return { ...parts, destinationRules: [...rules, own] };
}

function layOverRoutes(parts: OverlaidParts, service: MeshService, overlay: RolloutOverlay): Laid {
  const { virtualServices } = parts;
  const named = overlay.virtualService;
  if (named === undefined) {
    const laid = virtualServices.map((each) => withWeights(each, overlay, undefined));
    const all = withOwnRoute(laid, service, overlay);
    if (all.every((each) => virtualServices.includes(each)))
      return { parts, problem: `no route leads to both versions of ${overlay.host}` };
    return { parts: { ...parts, virtualServices: all } };
  }
  const isNamed = ({ name, namespace }: MeshVirtualService): boolean =>
    name === named.name && namespace === overlay.namespace;
  const found = virtualServices.find(isNamed);
  const where = `${overlay.namespace}/${named.name}`;
  if (found === undefined) return { parts, problem: `there is no VirtualService ${where}` };
  const laid = withWeights(found, overlay, named.routes);
  if (laid === found) {
    const what = named.routes === undefined ? "no route" : `no route named ${named.routes.join(" or ")} that leads`;
    return { parts, problem: `the VirtualService ${where} has ${what} to both versions of ${overlay.host}` };
  }
  return { parts: { ...parts, virtualServices: virtualServices.map((each) => (each === found ? laid : each)) } };
}

/** The same object where no route leads to the host. */
function withWeights(
  virtualService: MeshVirtualService,
  overlay: RolloutOverlay,
  names: readonly string[] | undefined,
): MeshVirtualService {
  const http = virtualService.http.flatMap((route) =>
    names === undefined || names.includes(route.name ?? "") ? routesOf(route, overlay) : [route],
  );
  const isSame = http.length === virtualService.http.length && http.every((each, i) => each === virtualService.http[i]);
  // Routes of connections have no names.
  const tls = names === undefined ? virtualService.tls?.map((route) => connectionRoute(route, overlay)) : undefined;
  const tcp = names === undefined ? virtualService.tcp?.map((route) => connectionRoute(route, overlay)) : undefined;
  const isAsWritten = (routes: readonly object[] | undefined, written: readonly object[] = []): boolean =>
    routes === undefined || routes.every((each, index) => each === written[index]);
  if (isSame && isAsWritten(tls, virtualService.tls) && isAsWritten(tcp, virtualService.tcp)) return virtualService;
  return { ...virtualService, http, ...(tls === undefined ? {} : { tls }), ...(tcp === undefined ? {} : { tcp }) };
}

/** By weight alone: connections have no headers. */
function connectionRoute<Route extends Pick<TcpRoute, "route">>(route: Route, overlay: RolloutOverlay): Route {
  const split = splitter(route.route, overlay);
  return split === undefined ? route : { ...route, route: split(overlay.weight) };
}

/** A route to the stable version or to the whole Service, with the route by header before it; else as it is. */
function routesOf(route: HttpRoute, overlay: RolloutOverlay): readonly HttpRoute[] {
  const split = splitter(route.route ?? [], overlay);
  if (split === undefined) return [route];
  const laid = { ...route, route: split(overlay.weight) };
  if (overlay.headerMatch === undefined) return [laid];
  const match = withHeader(route.match, overlay.headerMatch);
  return match.length === 0 ? [laid] : [{ ...route, route: split(percent), match }, laid];
}

type Weighted = Pick<WeightedDestination, "destination" | "weight">;

/** The destinations with so many percent for the canary; undefined where none is the stable version or all of them. */
function splitter<Each extends Weighted>(
  destinations: readonly Each[],
  overlay: RolloutOverlay,
): ((canaryPercent: number) => Each[]) | undefined {
  const { host } = overlay;
  const [stable, canary] = [subsetName(overlay, "stable"), subsetName(overlay, "canary")];
  const isVersion = ({ destination }: Each): boolean =>
    destination.host === host && [undefined, "", stable, canary].includes(destination.subset);
  // Whoever sends requests to the canary alone has asked for just that.
  if (!destinations.some((each) => isVersion(each) && each.destination.subset !== canary)) return undefined;
  const weightOf = ({ weight }: Each): number => weight ?? (destinations.length === 1 ? 1 : 0);
  return (canaryPercent) =>
    weighted(destinations, (each) => {
      if (!isVersion(each)) return [{ ...each, weight: weightOf(each) * percent }];
      return [
        { ...toSubset(each, stable), weight: weightOf(each) * (percent - canaryPercent) },
        { ...toSubset(each, canary), weight: weightOf(each) * canaryPercent },
      ];
    });
}

function toSubset<Each extends Weighted>(each: Each, subset: string): Each {
  return { ...each, destination: { ...each.destination, subset } };
}

/** Equal destinations are one, those that get nothing are left out, and the sum is one that proxies take. */
function weighted<Each extends Weighted>(
  destinations: readonly Each[],
  split: (each: Each) => readonly (Each & { readonly weight: number })[],
): Each[] {
  const sums: (Each & { readonly weight: number })[] = [];
  for (const part of destinations.flatMap(split)) {
    const index = sums.findIndex(({ destination }) => isDeepStrictEqual(destination, part.destination));
    if (index < 0) sums.push(part);
    else sums[index] = { ...part, weight: sums[index]!.weight + part.weight };
  }
  const total = sums.reduce((sum, { weight }) => sum + weight, 0);
  const scale = Math.max(1, total / maxTotalWeight);
  const fitting = sums.map((each) => ({ ...each, weight: Math.floor(each.weight / scale) }));
  const taken = fitting.filter(({ weight }) => weight > 0);
  return taken.length === 0 ? [...destinations] : taken;
}

/** The route's conditions, each with the header's; none that says something else of that header. */
function withHeader(matches: readonly HttpMatch[] | undefined, { name, ...value }: HeaderRouteMatch): HttpMatch[] {
  const all: readonly HttpMatch[] = matches === undefined || matches.length === 0 ? [{}] : matches;
  return all.flatMap((match) => {
    const own = Object.entries(match.headers ?? {}).find(([other]) => other.toLowerCase() === name.toLowerCase());
    if (own !== undefined) return isDeepStrictEqual(own[1], value) ? [match] : [];
    return [{ ...match, headers: { ...match.headers, [name]: value } }];
  });
}

/** For sidecars, whose requests to a port go to the Service itself where no VirtualService says anything of it. */
function withOwnRoute(
  virtualServices: readonly MeshVirtualService[],
  service: MeshService,
  overlay: RolloutOverlay,
): readonly MeshVirtualService[] {
  const { hostname, namespace } = service;
  const own = { route: [{ destination: { host: hostname } }] };
  const httpOf = (number: number): readonly HttpRoute[] =>
    routesOf({ ...own, match: [{ port: number, gateways: ["mesh"] }] }, overlay);
  const tcpOf = (number: number): TcpRoute =>
    connectionRoute({ ...own, match: [{ port: number, gateways: ["mesh"] }] }, overlay);
  const requests = service.ports.filter(({ protocol }) => isHttp(protocol));
  const connections = service.ports.filter(({ protocol }) => passesConnections(protocol));
  const holding = virtualServices.find(
    ({ hosts, gateways }) => gateways.includes("mesh") && hosts.some((host) => hostCovers(host, hostname)),
  );
  if (holding === undefined) {
    const { name } = overlay;
    const http = requests.length === 0 ? [] : routesOf(own, overlay);
    const tcp = connections.map(({ number }) => tcpOf(number));
    if (http.length + tcp.length === 0) return virtualServices;
    const made = { name, namespace, hosts: [hostname], gatewayHosts: [hostname], gateways: ["mesh"], http };
    return [...virtualServices, tcp.length === 0 ? made : { ...made, tcp }];
  }
  const { http, tls = [], tcp = [] } = holding;
  const moreHttp = requests.filter(({ number }) => !sayOfPort(http, number)).flatMap(({ number }) => httpOf(number));
  const moreTcp = connections
    .filter(({ number }) => !sayOfPort([...tls, ...tcp], number))
    .map(({ number }) => tcpOf(number));
  if (moreHttp.length + moreTcp.length === 0) return virtualServices;
  const more = {
    ...holding,
    http: [...http, ...moreHttp],
    ...(moreTcp.length === 0 ? {} : { tcp: [...tcp, ...moreTcp] }),
  };
  return virtualServices.map((each) => (each === holding ? more : each));
}

/** Whether one of them is for sidecars' requests, or connections, to a port. */
function sayOfPort(
  routes: readonly { readonly match?: readonly { readonly port?: number; readonly gateways?: readonly string[] }[] }[],
  number: number,
): boolean {
  return routes.some(
    ({ match = [] }) =>
      match.length === 0 ||
      match.some(
        ({ port = number, gateways = [] }) => port === number && (gateways.length === 0 || gateways.includes("mesh")),
      ),
  );
}
