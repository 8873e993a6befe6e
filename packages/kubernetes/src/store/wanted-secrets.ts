// Which Secrets of a cluster the mesh reads: those that its resources name, in the namespaces in which they are looked
// for, and no other.
import { authoritiesSuffix, type MeshResource, selects, type Store } from "@tulle/config";

/** `namespace/name` of each. */
export function wantedSecrets(store: Pick<Store, "list">): ReadonlySet<string> {
  const wanted = new Set<string>();
  const want = (namespace: string, name: string): void => {
    const plain = name.replace(/^kubernetes:\/\//, "");
    wanted.add(`${namespace}/${plain}`);
    wanted.add(`${namespace}/${plain}${authoritiesSuffix}`);
  };
  const gatewayNamespaces = new Set<string>();
  for (const gateway of store.list("Gateway")) {
    const namespaces = namespacesOf(gateway.spec.selector ?? {}, store);
    for (const namespace of namespaces) gatewayNamespaces.add(namespace);
    for (const { tls } of gateway.spec.servers) {
      const { credentialName, credentialNames = [] } = tls ?? {};
      const names = credentialName === undefined ? credentialNames : [credentialName];
      for (const name of names) for (const namespace of namespaces) want(namespace, name);
    }
  }
  // A certificate that a gateway shows to a server is looked for where the gateway is.
  for (const { spec } of store.list("DestinationRule")) {
    const policies = [spec.trafficPolicy, ...(spec.subsets ?? []).map(({ trafficPolicy }) => trafficPolicy)];
    const settings = policies.flatMap((policy) => [
      policy?.tls,
      ...(policy?.portLevelSettings ?? []).map(({ tls }) => tls),
    ]);
    for (const tls of settings) {
      if (tls?.credentialName === undefined) continue;
      for (const namespace of gatewayNamespaces) want(namespace, tls.credentialName);
    }
  }
  for (const { metadata, spec } of store.list("BrowserLogin")) {
    if (spec.clientSecret !== undefined) wanted.add(`${metadata.namespace}/${spec.clientSecret.name}`);
  }
  return wanted;
}

/** Where the pods are that a Gateway's selector means. */
function namespacesOf(selector: Readonly<Record<string, string>>, store: Pick<Store, "list">): ReadonlySet<string> {
  const pods = store.list("Pod").filter(({ metadata }) => selects(selector, metadata.labels ?? {}));
  return new Set(pods.map(({ metadata }) => metadata.namespace));
}

/** Whether a change may want others: all else is left as it is. */
export function decidesOnSecrets({ kind }: MeshResource): boolean {
  return kind === "Gateway" || kind === "DestinationRule" || kind === "BrowserLogin" || kind === "Pod";
}
