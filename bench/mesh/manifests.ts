// The policies of the bench's mesh, as a user writes them.

export const client = { namespace: "shop", principal: "cluster.local/ns/shop/sa/client" } as const;

const server = { matchLabels: { app: "server" } };

/** Mutual TLS and nothing else. */
export const strict = manifest("PeerAuthentication", "strict", { mtls: { mode: "STRICT" } });

/** Lets through whom one of the rules describes. */
export function allow(name: string, rules: readonly object[]): string {
  return manifest("AuthorizationPolicy", name, { selector: server, action: "ALLOW", rules });
}

/** HTTP/1.1 of clients crosses to the server's sidecar as it is, not as streams of HTTP/2. */
export const keepHttp1 = JSON.stringify({
  apiVersion: "networking.istio.io/v1",
  kind: "DestinationRule",
  metadata: { name: "server", namespace: client.namespace },
  spec: { host: "server", trafficPolicy: { connectionPool: { http: { h2UpgradePolicy: "DO_NOT_UPGRADE" } } } },
});

function manifest(kind: string, name: string, spec: object): string {
  const metadata = { name, namespace: client.namespace };
  return JSON.stringify({ apiVersion: "security.istio.io/v1", kind, metadata, spec });
}
