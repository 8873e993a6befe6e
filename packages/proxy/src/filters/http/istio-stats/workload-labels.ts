// What metrics say about a workload, and where it is told: by the peer's header, by an endpoint's metadata, by our own
// environment (labels of `istio_requests_total` without their `source_` and `destination_`).

import { otherValue } from "@tulle/telemetry";

export interface WorkloadLabels {
  readonly workload: string;
  readonly workload_namespace: string;
  readonly principal: string;
  readonly app: string;
  readonly version: string;
  readonly canonical_service: string;
  readonly canonical_revision: string;
  readonly cluster: string;
}

const names = [
  "workload",
  "workload_namespace",
  "principal",
  "app",
  "version",
  "canonical_service",
  "canonical_revision",
  "cluster",
] as const satisfies readonly (keyof WorkloadLabels)[];

/** Istio's word for a label that nobody told. */
const unknown = "unknown";
/** Eight labels of 63 characters fit many times. */
const maxEncodedCharacters = 8192;
const maxLabelCharacters = 253;

function labelsFrom(told: Readonly<Record<string, unknown>>): WorkloadLabels {
  const entries = names.map((name) => {
    const value = told[name];
    return [name, typeof value === "string" && value !== "" ? value.slice(0, maxLabelCharacters) : unknown];
  });
  return Object.fromEntries(entries) as WorkloadLabels;
}

export const unknownWorkload = labelsFrom({});

/** Of peers for which there is no more room. */
export const otherWorkload = labelsFrom({
  ...Object.fromEntries(names.map((name) => [name, otherValue])),
  principal: unknown,
});

/**
 * Reads `x-envoy-peer-metadata`: base64 of a JSON object. Anything else gives the unknown workload: whoever can open a
 * connection can send this header. It never names a principal, which only a certificate proves.
 */
export function decodePeerLabels(value: string | undefined): WorkloadLabels {
  if (value === undefined || value === "" || value.length > maxEncodedCharacters) return unknownWorkload;
  try {
    const decoded: unknown = JSON.parse(Buffer.from(value, "base64").toString("utf8"));
    if (typeof decoded !== "object" || decoded === null) return unknownWorkload;
    return labelsFrom({ ...decoded, principal: "" });
  } catch {
    return unknownWorkload;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * From endpoint metadata `istio`: `workload` is `name;namespace;canonical service;canonical revision;cluster` (Istio).
 */
export function endpointLabels(metadata: Readonly<Record<string, unknown>>): WorkloadLabels {
  const istio = record(metadata["istio"]);
  const text = typeof istio["workload"] === "string" ? istio["workload"] : "";
  const [workload, workloadNamespace, canonicalService, canonicalRevision, cluster] = text.split(";");
  const { app, version } = record(istio["labels"]);
  return labelsFrom({
    workload,
    workload_namespace: workloadNamespace,
    canonical_service: canonicalService,
    canonical_revision: canonicalRevision,
    cluster,
    app,
    version,
  });
}

export interface ServiceLabels {
  readonly service: string;
  readonly name: string;
  readonly namespace: string;
}

/** From cluster metadata `istio`: the first of `services`; undefined when it names none. */
export function clusterService(metadata: Readonly<Record<string, unknown>>): ServiceLabels | undefined {
  const { services } = record(metadata["istio"]);
  const first = record(Array.isArray(services) ? (services as unknown[])[0] : undefined);
  const { host, name, namespace } = first;
  if (typeof host !== "string" || host === "") return undefined;
  return {
    service: host,
    name: typeof name === "string" ? name : host,
    namespace: typeof namespace === "string" ? namespace : unknown,
  };
}

/** Set by the agent: what this proxy tells peers about its workload, and what its own metrics say. */
const ownWorkloadVariable = "TULLE_PEER_METADATA";

export function ownWorkloadLabels(environment: Readonly<Record<string, string | undefined>>): WorkloadLabels {
  return decodePeerLabels(environment[ownWorkloadVariable]);
}
