/**
 * IST0101, IST0132, IST0167, TUL0009: a BrowserLogin's gateways, Secret and Service exist, its hosts have pages, and
 * its own two paths are taken from nobody. A sign-in that holds for nothing looks like protection and is none.
 */
import { secretValue } from "../kinds/secret.ts";
import { nearestName } from "../findings/nearest-name.ts";
import { hostsOverlap, resolveGateway } from "../rules/resolve-host.ts";
import type { BrowserLogin, VirtualService } from "../kinds/resource.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

const clientSecretKey = "client-secret";

export const browserLogins: Analyzer = {
  name: "browser-logins",
  codes: ["IST0101", "IST0132", "IST0167", "TUL0009"],
  *run(mesh) {
    for (const login of mesh.list("BrowserLogin")) {
      yield* checkGateways(mesh, login);
      yield* checkClientSecret(mesh, login);
      yield* checkBackend(mesh, login);
      const routes = boundServices(mesh, login);
      yield* checkHosts(login, routes);
      yield* checkOwnPaths(login, routes);
    }
  },
};

function* checkGateways(mesh: AnalyzedMesh, login: BrowserLogin): Generator<Discovery> {
  for (const [index, reference] of login.spec.gateways.entries()) {
    const gateway = resolveGateway(reference, login.metadata.namespace);
    if (mesh.gateways.has(gateway)) continue;
    const near = nearestName(gateway, mesh.gateways.keys());
    yield {
      code: "IST0101",
      resource: login,
      path: ["spec", "gateways", index],
      message: `gateway "${gateway}" not found`,
      suggestion: near === undefined ? "Add that Gateway." : `Did you mean "${near}"?`,
    };
  }
}

function* checkClientSecret(mesh: AnalyzedMesh, login: BrowserLogin): Generator<Discovery> {
  const { namespace } = login.metadata;
  const name = login.spec.clientSecret?.name;
  if (name === undefined) return;
  const found = mesh.list("Secret").find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  if (found !== undefined && (secretValue(found, clientSecretKey)?.length ?? 0) > 0) return;
  yield {
    code: "IST0101",
    resource: login,
    path: ["spec", "clientSecret", "name"],
    message:
      found === undefined
        ? `secret "${namespace}/${name}" not found, so nobody can sign in`
        : `secret "${namespace}/${name}" has no key "${clientSecretKey}", so nobody can sign in`,
    suggestion: `Put the client's secret under "${clientSecretKey}" of that Secret.`,
  };
}

function* checkBackend(mesh: AnalyzedMesh, login: BrowserLogin): Generator<Discovery> {
  const { backend } = login.spec.provider;
  if (backend === undefined) return;
  const host = mesh.resolve(backend.host, login.metadata.namespace);
  const service = mesh.servicesByHost.get(host);
  const port = backend.port?.number;
  if (service !== undefined && (port === undefined || service.spec.ports.some((each) => each.port === port))) return;
  yield {
    code: "IST0101",
    resource: login,
    path: ["spec", "provider", "backend", ...(service === undefined ? ["host"] : ["port", "number"])],
    message: service === undefined ? `host "${host}" not found` : `service "${host}" has no port ${port}`,
    suggestion: "The gateway redeems codes there.",
  };
}

/** VirtualServices of the login's gateways. */
function boundServices(mesh: AnalyzedMesh, login: BrowserLogin): readonly VirtualService[] {
  const own = new Set(login.spec.gateways.map((each) => resolveGateway(each, login.metadata.namespace)));
  return mesh
    .list("VirtualService")
    .filter(({ metadata, spec }) =>
      (spec.gateways ?? []).some((each) => own.has(resolveGateway(each, metadata.namespace))),
    );
}

function* checkHosts(login: BrowserLogin, routes: readonly VirtualService[]): Generator<Discovery> {
  if (routes.length === 0) {
    yield {
      code: "IST0167",
      resource: login,
      path: ["spec", "gateways"],
      message: "no VirtualService is bound to its gateways, so there are no pages to sign in for",
      suggestion: "Bind the VirtualService of the pages to one of the gateways.",
    };
    return;
  }
  for (const [index, host] of login.spec.hosts.entries()) {
    if (routes.some(({ spec }) => spec.hosts.some((each) => hostsOverlap(host, each)))) continue;
    yield {
      code: "IST0132",
      resource: login,
      path: ["spec", "hosts", index],
      message: `no VirtualService of its gateways has a host in common with "${host}"`,
      suggestion: `They have ${[...new Set(routes.flatMap(({ spec }) => spec.hosts))].join(", ")}.`,
    };
  }
}

/** The filter answers at these paths before any route is asked: what a route meant by them is gone. */
function* checkOwnPaths(login: BrowserLogin, routes: readonly VirtualService[]): Generator<Discovery> {
  for (const field of ["redirectPath", "logoutPath"] as const) {
    const path = login.spec[field];
    const owner = routes.find(({ spec }) =>
      (spec.http ?? []).some(({ match = [] }) => match.some(({ uri }) => namesPath(uri, path))),
    );
    if (owner === undefined) continue;
    yield {
      code: "TUL0009",
      resource: login,
      path: ["spec", field],
      message: `${path} is among the paths of VirtualService "${owner.metadata.namespace}/${owner.metadata.name}", which no longer gets its requests`,
      suggestion: "Choose a path that no route names.",
    };
  }
}

/** A prefix of every path names none. */
function namesPath(uri: { readonly exact?: string; readonly prefix?: string } | undefined, path: string): boolean {
  if (uri?.exact !== undefined) return uri.exact === path;
  return uri?.prefix !== undefined && uri.prefix.length > 1 && path.startsWith(uri.prefix);
}
