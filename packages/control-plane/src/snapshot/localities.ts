// Where pods run, by the labels of their nodes: which endpoints are near to which proxy.
import type { Pod } from "@tulle/config";

const regionLabel = "topology.kubernetes.io/region";
const zoneLabel = "topology.kubernetes.io/zone";
/** Istio's: what Kubernetes has no label for. */
const subZoneLabel = "topology.istio.io/subzone";
/** Istio's, of a pod, with dots in the place of slashes: it wins, as for who knows better than the node. */
const podLabel = "istio-locality";

/** `region/zone/subzone` of a pod, the narrower ones optional; undefined where nobody knows. */
export type LocalityOf = (pod: Pick<Pod, "metadata" | "spec">) => string | undefined;

type Labels = Readonly<Record<string, string>>;

export function localitiesOfPods(labelsOfNode: (name: string) => Labels | undefined): LocalityOf {
  return ({ metadata, spec }) => {
    const said = metadata.labels?.[podLabel];
    if (said !== undefined && said !== "") return said.includes("/") ? said : said.replaceAll(".", "/");
    const labels = spec.nodeName === undefined ? {} : (labelsOfNode(spec.nodeName) ?? {});
    const { [regionLabel]: region = "", [zoneLabel]: zone = "", [subZoneLabel]: subZone = "" } = labels;
    if (region === "" && zone === "") return undefined;
    return subZone === "" ? `${region}/${zone}` : `${region}/${zone}/${subZone}`;
  };
}
