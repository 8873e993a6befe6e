// Which collections of an API server are followed, and what of each: one row for every kind that the mesh reads.
import { type Kind, kindDefinitions, kinds, rootNamespaces } from "@tulle/config";
import { reportsConfigMap } from "../names.ts";

export interface Collection {
  readonly kind: Kind;
  /** With the group before a slash, but for the core. */
  readonly apiVersion: string;
  /** Of the whole cluster, or of one namespace. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Older ones of the group: not every release of Istio serves the newest of each kind. */
  readonly otherVersions?: readonly Pick<Collection, "apiVersion" | "path">[];
  /** Where two groups hold one name, the one whose rank is lower is meant. */
  readonly rank: number;
}

export interface CollectionChoice {
  /** Istio's groups are followed beside Tulle's. */
  readonly withIstioGroups: boolean;
}

const tulleGroup = /(?:^|\.)tulle\.io\//;
const istioGroup = /(?:^|\.)istio\.io\//;

/** Of the mesh's kinds, and not Kubernetes' own. */
export function isOwn({ apiVersion }: Pick<Collection, "apiVersion">): boolean {
  return tulleGroup.test(apiVersion) || istioGroup.test(apiVersion);
}

export function collectionsOf({ withIstioGroups }: CollectionChoice): readonly Collection[] {
  return kinds.flatMap((kind): readonly Collection[] => {
    // Only those that gateways name are read, one by one.
    if (kind === "Secret") return [];
    if (kind === "ConfigMap") return meshConfigMaps;
    const { apiVersions } = kindDefinitions[kind];
    const [tulle, ...olderOfTulle] = apiVersions.filter((version) => tulleGroup.test(version));
    const [istio, ...olderOfIstio] = apiVersions.filter((version) => istioGroup.test(version));
    if (tulle === undefined && istio === undefined) return [collection(kind, [apiVersions[0]!], 0)];
    return [
      ...(tulle === undefined ? [] : [collection(kind, [tulle, ...olderOfTulle], 0)]),
      ...(istio === undefined || !withIstioGroups ? [] : [collection(kind, [istio, ...olderOfIstio], 1)]),
    ];
  });
}

/** The newest version comes first. */
function collection(kind: Kind, versions: readonly [string, ...string[]], rank: number): Collection {
  const of = (apiVersion: string) => ({ apiVersion, path: `${groupPath(apiVersion)}/${kindDefinitions[kind].plural}` });
  const [newest, ...others] = versions;
  return { kind, ...of(newest), otherVersions: others.map(of), rank };
}

/** The other ConfigMaps of a cluster are nobody's business here. */
const meshConfigMaps: readonly Collection[] = rootNamespaces.map((namespace) => ({
  kind: "ConfigMap",
  apiVersion: "v1",
  path: `/api/v1/namespaces/${namespace}/configmaps`,
  // It changes as proxies answer, and says nothing of the mesh.
  query: { fieldSelector: `metadata.name!=${reportsConfigMap}` },
  rank: 0,
}));

/** Path of an object that is in the cluster, or shall be. */
export function objectPath(apiVersion: string, kind: Kind, namespace: string, name: string): string {
  const { plural, scope } = kindDefinitions[kind];
  const within = scope === "Namespaced" ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${groupPath(apiVersion)}${within}/${plural}/${encodeURIComponent(name)}`;
}

/** Path of those of a namespace. */
export function collectionPath(apiVersion: string, kind: Kind, namespace: string): string {
  return `${groupPath(apiVersion)}/namespaces/${encodeURIComponent(namespace)}/${kindDefinitions[kind].plural}`;
}

function groupPath(apiVersion: string): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
