// An issuer that is a Service of the mesh: nothing but the mesh knows its name, so its keys are fetched from an
// endpoint.
import type { EndpointSnapshot, MeshService, MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import { servicePortKey } from "../snapshot/mesh-snapshot.ts";
import { sniName } from "../names/resource-names.ts";

export interface SocketEndpoint {
  readonly address: string;
  readonly port: number;
  /** It is a pod's address. */
  readonly ofPod?: true;
  /** Where a proxy of the mesh answers that takes mutual TLS. */
  readonly meshTls?: {
    readonly sni: string;
    /** SPIFFE ids behind the Service; empty where none are known. */
    readonly identities: readonly string[];
  };
}

/** "none" for a Service without ready endpoints, undefined for a host that is no Service. */
export function meshEndpoint(
  url: URL,
  services: readonly MeshService[],
  endpoints: Pick<EndpointSnapshot, "byServicePort">,
): SocketEndpoint | "none" | undefined {
  const host = url.hostname.toLowerCase().replace(/\.$/, "");
  // What a ServiceEntry names has an address outside, too.
  const service = services.find(
    ({ hostname, name, namespace, entry }) =>
      entry === undefined && [hostname, `${name}.${namespace}`, `${name}.${namespace}.svc`].includes(host),
  );
  if (service === undefined) return undefined;
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const endpoint = endpoints.byServicePort.get(servicePortKey(service, port))?.find(({ address }) => address !== "");
  if (endpoint === undefined) return "none";
  const { address, port: endpointPort, tlsMode, workload } = endpoint;
  if (tlsMode === undefined) return { address, port: endpointPort, ...(workload === "" ? {} : { ofPod: true }) };
  const meshTls = { sni: sniName(service.hostname, port, undefined), identities: service.identities ?? [] };
  return { address, port: endpointPort, meshTls };
}

interface Picture {
  readonly snapshot: Pick<MeshSnapshot, "services">;
  readonly endpoints: Pick<EndpointSnapshot, "byServicePort">;
}

/** Where the Services of the mesh answer now, for whoever fetches from them. */
export class MeshAddresses {
  #picture: Picture = { snapshot: { services: [] }, endpoints: { byServicePort: new Map() } };

  update({ snapshot, endpoints }: Picture): void {
    this.#picture = { snapshot, endpoints };
  }

  /** See `meshEndpoint`. */
  resolve(url: URL): SocketEndpoint | "none" | undefined {
    const { snapshot, endpoints } = this.#picture;
    return meshEndpoint(url, snapshot.services, endpoints);
  }
}
