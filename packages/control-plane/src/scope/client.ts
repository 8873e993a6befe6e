// What a proxy sees of the mesh as a client: Services, routes and rules that are exported to its namespace and are
// meant for its labels. Nothing behind this file looks at `exportTo`, `sourceLabels`, `sourceNamespace` and
// `workloadSelector` again.
import { selects } from "@tulle/config";
import { isExportedTo, type HttpRoute, type TcpRoute, type TlsRoute } from "@tulle/config";
import type { MeshDestinationRule, MeshService, MeshSnapshot, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import type { Proxy } from "./proxy.ts";

/** All that decides what a client sees. Clients of a namespace differ where some rule or route asks for labels. */
export interface Client {
  readonly namespace: string;
  /** Of the label selectors in the snapshot, as JSON, those that select the client. */
  readonly selectors: readonly string[];
}

export type SeenMesh = Pick<MeshSnapshot, "services" | "virtualServices" | "destinationRules">;

type Labels = Readonly<Record<string, string>>;

const selectorsOf = new WeakMap<MeshSnapshot, ReadonlyMap<string, Labels>>();

export function clientOf(snapshot: MeshSnapshot, { namespace, labels }: Pick<Proxy, "namespace" | "labels">): Client {
  let selectors = selectorsOf.get(snapshot);
  if (selectors === undefined) selectorsOf.set(snapshot, (selectors = clientSelectors(snapshot)));
  const own = [...selectors].filter(([, selector]) => selects(selector, labels)).map(([key]) => key);
  return { namespace, selectors: own };
}

/** All label selectors that are about clients, by their JSON. */
function clientSelectors({ destinationRules, virtualServices }: MeshSnapshot): ReadonlyMap<string, Labels> {
  const ofRules = destinationRules.map(({ workloadSelector }) => workloadSelector);
  const ofRoutes = virtualServices.flatMap(({ http, tls = [], tcp = [] }) =>
    [...http, ...tls, ...tcp].flatMap(({ match = [] }) => match.map(({ sourceLabels }) => sourceLabels)),
  );
  return new Map(
    [...ofRules, ...ofRoutes].flatMap((each) => (each === undefined ? [] : [[JSON.stringify(each), each]])),
  );
}

export function seenBy(snapshot: MeshSnapshot, client: Client): SeenMesh {
  return {
    services: oneOfEachHost(exportedOnes(snapshot.services, client), client),
    virtualServices: exportedOnes(snapshot.virtualServices, client).map((each) => routesFor(each, client)),
    destinationRules: rulesFor(snapshot.destinationRules, client),
  };
}

/**
 * Several namespaces may have a ServiceEntry for one host. The client's own is meant, else the one that fewest see; of
 * equal ones the oldest. A Service keeps its host. Istio's order (DefaultSidecarScopeForNamespace) has no place for the
 * client's own: whoever exports an entry to that namespace alone would take its host away.
 */
function oneOfEachHost(services: readonly MeshService[], { namespace }: Client): readonly MeshService[] {
  const chosen = new Map<string, MeshService>();
  for (const service of services) {
    const other = chosen.get(service.hostname);
    if (other !== undefined && distance(service, namespace) >= distance(other, namespace)) continue;
    chosen.set(service.hostname, service);
  }
  return chosen.size === services.length ? services : services.filter((each) => chosen.get(each.hostname) === each);
}

function distance({ namespace, entry, exportedTo }: MeshService, clientNamespace: string): number {
  if (entry === undefined) return 0;
  if (namespace === clientNamespace) return 1;
  if (exportedTo === undefined) return 4;
  return exportedTo.length === 1 ? 2 : 3;
}

function exportedOnes<T extends MeshService | MeshVirtualService>(
  all: readonly T[],
  { namespace }: Client,
): readonly T[] {
  return all.filter(({ exportedTo }) => isExportedTo(exportedTo, namespace));
}

/**
 * A namespace always follows its own rules, whomever they are exported to (Istio: namespaceLocal); a selector is about
 * it alone.
 */
function rulesFor(rules: readonly MeshDestinationRule[], client: Client): readonly MeshDestinationRule[] {
  const isFor = ({ namespace, exportedTo, workloadSelector }: MeshDestinationRule): boolean => {
    const isOwn = namespace === client.namespace;
    if (workloadSelector !== undefined) return isOwn && isSelected(workloadSelector, client);
    return isOwn || isExportedTo(exportedTo, client.namespace);
  };
  // The same list stays, so that its index does.
  return rules.every(isFor) ? rules : rules.filter(isFor);
}

function routesFor(virtualService: MeshVirtualService, client: Client): MeshVirtualService {
  const { http, tls, tcp } = virtualService;
  if (![...http, ...(tls ?? []), ...(tcp ?? [])].some(asksForClients)) return virtualService;
  const meant = <R extends HttpRoute | TlsRoute | TcpRoute>(routes: readonly R[]): readonly R[] =>
    routes.flatMap((route) => routeFor(route, client) ?? []);
  return {
    ...virtualService,
    http: meant(http),
    ...(tls === undefined ? {} : { tls: meant(tls) }),
    ...(tcp === undefined ? {} : { tcp: meant(tcp) }),
  };
}

function asksForClients({ match = [] }: HttpRoute | TlsRoute | TcpRoute): boolean {
  return match.some(({ sourceLabels, sourceNamespace }) => sourceLabels !== undefined || sourceNamespace !== undefined);
}

/**
 * The route with those of its matches that are for the client; undefined where none is. All conditions of a match have
 * to hold: Istio drops those on clients where the match names gateways.
 */
function routeFor<R extends HttpRoute | TlsRoute | TcpRoute>(route: R, client: Client): R | undefined {
  const { match = [] } = route;
  if (match.length === 0) return route;
  const meant = match.filter(
    ({ sourceLabels, sourceNamespace }) =>
      (sourceNamespace === undefined || sourceNamespace === "" || sourceNamespace === client.namespace) &&
      (sourceLabels === undefined || isSelected(sourceLabels, client)),
  );
  if (meant.length === 0) return undefined;
  return { ...route, match: meant.map(({ sourceLabels: _labels, sourceNamespace: _namespace, ...rest }) => rest) };
}

function isSelected(selector: Labels, { selectors }: Client): boolean {
  return selectors.includes(JSON.stringify(selector));
}
