// /etc/resolv.conf of a pod, as Kubernetes' nodes write it for `dnsPolicy: ClusterFirst`.

export interface PodResolver {
  readonly namespace: string;
  /** Of the cluster's name server, in order. */
  readonly servers: readonly string[];
  /** Default `cluster.local`. */
  readonly clusterDomain?: string;
  /** The machine's own search path: it comes behind the cluster's. */
  readonly searchDomains?: readonly string[];
}

/**
 * With five dots: whatever has fewer is looked for in the search path first, so that `catalog.shop` is the mesh's even
 * where the world has such a name.
 */
export function podResolverFile({
  namespace,
  servers,
  clusterDomain = "cluster.local",
  searchDomains = [],
}: PodResolver): string {
  const path = [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain, ...searchDomains];
  const lines = [
    `search ${[...new Set(path)].join(" ")}`,
    ...servers.map((server) => `nameserver ${server}`),
    "options ndots:5",
  ];
  return lines.map((line) => `${line}\n`).join("");
}
