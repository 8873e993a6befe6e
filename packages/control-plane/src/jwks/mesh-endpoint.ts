// An issuer that is a Service of the mesh: nothing but the mesh knows its name, so its keys are fetched from an endpoint.
import type { EndpointSnapshot, MeshService } from "../snapshot/mesh-snapshot.ts";
import { servicePortKey } from "../snapshot/mesh-snapshot.ts";

export interface SocketEndpoint {
  readonly address: string;
  readonly port: number;
}

/** "none" for a Service without ready endpoints, undefined for a host that is no Service. */
export function meshEndpoint(
  url: URL,
  services: readonly MeshService[],
  endpoints: EndpointSnapshot,
): SocketEndpoint | "none" | undefined {
  const host = url.hostname.toLowerCase().replace(/\.$/, "");
  const service = services.find(({ hostname, name, namespace }) =>
    [hostname, `${name}.${namespace}`, `${name}.${namespace}.svc`].includes(host),
  );
  if (service === undefined) return undefined;
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const endpoint = endpoints.byServicePort.get(servicePortKey(service.hostname, port))?.[0];
  return endpoint === undefined ? "none" : { address: endpoint.address, port: endpoint.port };
}
