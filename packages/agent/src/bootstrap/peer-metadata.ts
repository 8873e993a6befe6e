// What a proxy tells the proxies that it calls about its workload, for the labels of their metrics. It travels in the
// header `x-envoy-peer-metadata`, which routes fill with `%ENVIRONMENT(TULLE_PEER_METADATA)%`: the agent sets that
// variable for the proxy, so that routes need not differ from proxy to proxy.
import type { AgentSettings } from "../settings.ts";

/** The environment variable that the control plane's routes name. */
export const peerMetadataVariable = "TULLE_PEER_METADATA";

/** All strings; empty where unknown. The names are those of the labels of `istio_requests_total`, without `source_`. */
export interface PeerMetadata {
  readonly workload: string;
  readonly workload_namespace: string;
  readonly app: string;
  readonly version: string;
  readonly canonical_service: string;
  readonly canonical_revision: string;
  readonly cluster: string;
  /** Empty until proxies prove who they are: a claim must not look like an identity. */
  readonly principal: string;
}

function labelsOf(settings: AgentSettings): Readonly<Record<string, unknown>> {
  const labels = settings.metadata["LABELS"];
  return typeof labels === "object" && labels !== null ? (labels as Record<string, unknown>) : {};
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The first label that is there (Istio: pkg/model/labels.go, canonical name and revision). */
function firstLabel(labels: Readonly<Record<string, unknown>>, ...names: readonly string[]): string {
  return names.map((name) => text(labels[name])).find((value) => value !== "") ?? "";
}

export function peerMetadata(settings: AgentSettings): PeerMetadata {
  const labels = labelsOf(settings);
  const workload = text(settings.metadata["WORKLOAD_NAME"]) || settings.podName;
  const service = firstLabel(labels, "service.istio.io/canonical-name", "app.kubernetes.io/name", "app");
  const revision = firstLabel(labels, "service.istio.io/canonical-revision", "app.kubernetes.io/version", "version");
  return {
    workload,
    workload_namespace: settings.podNamespace,
    app: text(labels["app"]),
    version: text(labels["version"]),
    canonical_service: service || workload,
    canonical_revision: revision || "latest",
    cluster: text(settings.metadata["CLUSTER_ID"]),
    principal: "",
  };
}

/** Base64 of compact JSON: any label is safe in a header. */
export function encodePeerMetadata(metadata: PeerMetadata): string {
  return Buffer.from(JSON.stringify(metadata), "utf8").toString("base64");
}

// Eight labels of 63 characters fit many times; more is nothing that an agent wrote.
const maxEncodedCharacters = 8192;

/** What a header's value says, or undefined if it is none of ours: the header comes from outside. */
export function decodePeerMetadata(value: string): Partial<PeerMetadata> | undefined {
  if (value === "" || value.length > maxEncodedCharacters) return undefined;
  try {
    const decoded: unknown = JSON.parse(Buffer.from(value, "base64").toString("utf8"));
    if (typeof decoded !== "object" || decoded === null || Array.isArray(decoded)) return undefined;
    return Object.fromEntries(Object.entries(decoded).filter(([, member]) => typeof member === "string"));
  } catch {
    return undefined;
  }
}
