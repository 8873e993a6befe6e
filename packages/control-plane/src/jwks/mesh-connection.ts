// A connection to an endpoint that takes mutual TLS, made as a sidecar would make it, with the control plane's own
// certificate: so that a STRICT issuer needs no exception for those who fetch its keys.
import { type PeerCertificate, type TLSSocket, connect } from "node:tls";
import { identifyPeer, spiffeIdText } from "@tulle/identity";
import { meshHttp1Alpn } from "../names/mesh-alpn.ts";
import type { SocketEndpoint } from "./mesh-endpoint.ts";

/** What the control plane shows of itself, and whom it believes. */
export interface MeshClient {
  readonly privateKeyPem: string;
  readonly certChainPem: string;
  readonly rootsPem: string;
  readonly trustDomain: string;
}

/** Resolves once the peer has proved to be a workload of the Service. */
export function connectInMesh(
  { address, port, meshTls }: SocketEndpoint & Required<Pick<SocketEndpoint, "meshTls">>,
  client: MeshClient,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({
    host: address,
    port,
    key: client.privateKeyPem,
    cert: client.certChainPem,
    ca: client.rootsPem,
    minVersion: "TLSv1.3",
    servername: meshTls.sni,
    ALPNProtocols: [...meshHttp1Alpn],
    // OpenSSL judges chain and times; a workload's certificate has no host name to compare.
    checkServerIdentity: (_host, peer) => strangerAt(peer, meshTls.identities, client.trustDomain),
  });
  socket.once("secureConnect", () => resolve(socket));
  socket.once("error", (error) => reject(new Error(`mutual TLS with ${address}:${port}: ${error.message}`)));
  signal.addEventListener("abort", () => socket.destroy(new Error("aborted")), { once: true });
  return promise;
}

/** An empty list accepts every workload of the trust domain, as in a sidecar's clusters. */
function strangerAt(peer: PeerCertificate, identities: readonly string[], trustDomain: string): Error | undefined {
  const identified = identifyPeer(peer.raw, { trustDomains: [trustDomain], peerIs: "server" });
  if (!identified.ok) return new Error(identified.message);
  const id = spiffeIdText(identified.spiffeId);
  return identities.length === 0 || identities.includes(id)
    ? undefined
    : new Error(`${id} answers, expected ${identities.join(" or ")}`);
}
