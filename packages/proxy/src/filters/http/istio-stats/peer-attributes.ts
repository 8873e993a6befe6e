// Attributes of Istio's own, which its expressions name beside Envoy's: the workloads at both ends, by the fields of
// its WorkloadMetadataObject.
import type { ReadAttribute } from "../../../cel/attributes.ts";
import type { CelMap } from "../../../cel/cel-value.ts";
import { hostLabels } from "./traffic-labels.ts";
import { decodePeerLabels, type WorkloadLabels } from "./workload-labels.ts";

const fields: Readonly<Record<string, keyof WorkloadLabels>> = {
  workload: "workload",
  namespace: "workload_namespace",
  service: "canonical_service",
  revision: "canonical_revision",
  app: "app",
  version: "version",
  cluster: "cluster",
};

function peer(labels: WorkloadLabels): CelMap {
  return {
    get: (name) => {
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      return field && labels[field];
    },
  };
}

const upstream: ReadAttribute = ({ info }) => info.upstreamHost && peer(hostLabels(info.upstreamHost));
const downstream: ReadAttribute = ({ info }) => peer(decodePeerLabels(info.downstreamPeerMetadata));

/** Both spellings that Istio's documentation has had. */
export const peerAttributes: ReadonlyMap<string, ReadAttribute> = new Map([
  ["upstream_peer", upstream],
  ["downstream_peer", downstream],
  ["filter_state.upstream_peer", upstream],
  ["filter_state.downstream_peer", downstream],
]);
