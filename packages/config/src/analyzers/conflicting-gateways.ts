/**
 * IST0145: two Gateways on the same pods claim one host on one port, or one port for plain HTTP and for something else.
 */
import type { Gateway } from "../kinds/resource.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

const plainHttp: ReadonlySet<string> = new Set(["HTTP", "HTTP2", "GRPC", "GRPC-WEB"]);

/** Others that a message names. */
const maxNamed = 10;

/** One server of a Gateway, at one of the pods that take its connections. */
interface Placed {
  readonly resource: Gateway;
  readonly server: number;
  readonly pod: string;
}

export const conflictingGateways: Analyzer = {
  name: "conflicting-gateways",
  codes: ["IST0145"],
  *run(mesh) {
    const servers = placedServers(mesh);
    yield* mixedPorts(servers);
    yield* claimedHosts(servers);
  },
};

function placedServers(mesh: AnalyzedMesh): readonly Placed[] {
  return mesh.list("Gateway").flatMap((resource) => {
    const pods = mesh.podsOf(resource);
    return resource.spec.servers.flatMap((_server, server) => pods.map((pod) => ({ resource, server, pod })));
  });
}

function* claimedHosts(servers: readonly Placed[]): Generator<Discovery> {
  const claims = servers.flatMap(({ resource, server, pod }) => {
    const { port, hosts, bind = "" } = resource.spec.servers[server]!;
    return hosts.map((host) => ({ resource, server, host, key: JSON.stringify([pod, port.number, bind, host]) }));
  });
  const told = new Set<string>();
  for (const claim of Map.groupBy(claims, ({ key }) => key).values()) {
    const names = [...new Set(claim.map(({ resource }) => nameOf(resource)))];
    if (names.length < 2) continue;
    for (const { resource, server, host } of claim) {
      const own = nameOf(resource);
      const others = names.slice(0, maxNamed + 1).filter((name) => name !== own);
      const more = names.length - 1 - Math.min(others.length, maxNamed);
      const listed = others.slice(0, maxNamed).join(", ") + (more > 0 ? ` and ${more} more` : "");
      const message = `host "${host}" on port ${resource.spec.servers[server]!.port.number} is served by the Gateway ${listed} already, on the same pods`;
      const once = JSON.stringify([own, server, message]);
      if (told.has(once)) continue;
      told.add(once);
      yield {
        code: "IST0145",
        resource,
        path: ["spec", "servers", server],
        message,
        suggestion: "Keep one of the servers, or give them different hosts.",
      };
    }
  }
}

function nameOf({ metadata }: Gateway): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** A listener reads a connection's first bytes in one way: plain HTTP wins, and the others would wait for ever. */
function* mixedPorts(servers: readonly Placed[]): Generator<Discovery> {
  const portOf = ({ resource, server }: Placed) => resource.spec.servers[server]!.port;
  const told = new Set<string>();
  for (const own of Map.groupBy(servers, (each) => JSON.stringify([each.pod, portOf(each).number])).values()) {
    const plain = own.find((each) => plainHttp.has(portOf(each).protocol));
    if (plain === undefined) continue;
    for (const each of own) {
      const { number, protocol } = portOf(each);
      const once = `${nameOf(each.resource)} ${each.server}`;
      if (plainHttp.has(protocol) || told.has(once)) continue;
      told.add(once);
      yield {
        code: "IST0145",
        resource: each.resource,
        path: ["spec", "servers", each.server, "port"],
        message: `port ${number} speaks plain HTTP for the Gateway ${nameOf(plain.resource)} on the same pods, so that this ${protocol} server has no effect`,
        suggestion: "Give one of them another port.",
      };
    }
  }
}
