/** IST0145: two Gateways on the same pods claim one host on one port, or one port for plain HTTP and for something else. */
import type { Gateway } from "../resource.ts";
import type { AnalyzedMesh, Analyzer, Discovery } from "./analyzer.ts";

const plainHttp: ReadonlySet<string> = new Set(["HTTP", "HTTP2", "GRPC", "GRPC-WEB"]);

export const conflictingGateways: Analyzer = {
  name: "conflicting-gateways",
  codes: ["IST0145"],
  *run(mesh) {
    yield* mixedPorts(mesh);
    const claims = new Map<string, { readonly resource: Gateway; readonly server: number; readonly host: string }[]>();
    for (const resource of mesh.list("Gateway")) {
      const selector = selectorOf(resource);
      for (const [server, { port, hosts, bind }] of resource.spec.servers.entries()) {
        for (const host of hosts) {
          const key = JSON.stringify([selector, port.number, bind ?? "", host]);
          const claim = claims.get(key) ?? [];
          claim.push({ resource, server, host });
          claims.set(key, claim);
        }
      }
    }
    for (const claim of claims.values()) {
      const names = new Set(claim.map(({ resource: { metadata } }) => `${metadata.namespace}/${metadata.name}`));
      if (names.size < 2) continue;
      for (const { resource, server, host } of claim) {
        const own = `${resource.metadata.namespace}/${resource.metadata.name}`;
        const others = [...names].filter((name) => name !== own);
        yield {
          code: "IST0145",
          resource,
          path: ["spec", "servers", server],
          message: `host "${host}" on port ${resource.spec.servers[server]!.port.number} is served by the Gateway ${others.join(", ")} already, on the same pods`,
          suggestion: "Keep one of the servers, or give them different hosts.",
        };
      }
    }
  },
};

function selectorOf({ spec }: Gateway): readonly (readonly [string, string])[] {
  return Object.entries(spec.selector ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A listener reads a connection's first bytes in one way: plain HTTP wins, and the others would wait for ever. */
function* mixedPorts(mesh: AnalyzedMesh): Generator<Discovery> {
  const servers = mesh.list("Gateway").flatMap((resource) =>
    resource.spec.servers.map(({ port }, server) => ({
      resource,
      server,
      port,
      key: JSON.stringify([selectorOf(resource), port.number]),
    })),
  );
  for (const own of Map.groupBy(servers, ({ key }) => key).values()) {
    const plain = own.find(({ port }) => plainHttp.has(port.protocol));
    if (plain === undefined) continue;
    const { name, namespace } = plain.resource.metadata;
    for (const { resource, server, port } of own.filter((each) => !plainHttp.has(each.port.protocol))) {
      yield {
        code: "IST0145",
        resource,
        path: ["spec", "servers", server, "port"],
        message: `port ${port.number} speaks plain HTTP for the Gateway ${namespace}/${name} on the same pods, so that this ${port.protocol} server has no effect`,
        suggestion: "Give one of them another port.",
      };
    }
  }
}
