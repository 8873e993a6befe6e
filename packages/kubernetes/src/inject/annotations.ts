/**
 * Every annotation and label of a pod that injection reads or writes, by Istio's name, with what becomes of it here.
 * docs/injection.md has the same rows; a test compares the two.
 */

/**
 * - `read`: it changes what is injected.
 * - `written`: injection leaves it on the pod.
 * - `ignored`: Istio reads it, and it has no effect here: a warning where it is used.
 */
export type AnnotationUse = "read" | "written" | "ignored";

const sidecar = "sidecar.istio.io";
const traffic = "traffic.sidecar.istio.io";
const readiness = "readiness.status.sidecar.istio.io";

export const podAnnotations: Readonly<Record<string, AnnotationUse>> = {
  [`${sidecar}/inject`]: "read",
  "inject.istio.io/templates": "read",
  "proxy.istio.io/config": "read",
  [`${sidecar}/proxy`]: "read",
  [`${sidecar}/proxyImage`]: "read",
  [`${sidecar}/proxyCPU`]: "read",
  [`${sidecar}/proxyCPULimit`]: "read",
  [`${sidecar}/proxyMemory`]: "read",
  [`${sidecar}/proxyMemoryLimit`]: "read",
  [`${sidecar}/nativeSidecar`]: "read",
  [`${sidecar}/interceptionMode`]: "read",
  [`${sidecar}/logLevel`]: "read",
  [`${sidecar}/rewriteAppHTTPProbers`]: "read",
  [`${sidecar}/userVolume`]: "read",
  [`${sidecar}/userVolumeMount`]: "read",
  [`${traffic}/includeInboundPorts`]: "read",
  [`${traffic}/excludeInboundPorts`]: "read",
  [`${traffic}/includeOutboundIPRanges`]: "read",
  [`${traffic}/excludeOutboundIPRanges`]: "read",
  [`${traffic}/includeOutboundPorts`]: "read",
  [`${traffic}/excludeOutboundPorts`]: "read",
  [`${traffic}/excludeInterfaces`]: "read",
  [`${traffic}/kubevirtInterfaces`]: "read",
  "istio.io/reroute-virtual-interfaces": "read",
  [`${readiness}/initialDelaySeconds`]: "read",
  [`${readiness}/periodSeconds`]: "read",
  [`${readiness}/failureThreshold`]: "read",
  "prometheus.istio.io/merge-metrics": "read",
  [`${sidecar}/status`]: "written",
  "istio.io/rev": "written",
  [`${readiness}/applicationPorts`]: "ignored",
  "status.sidecar.istio.io/port": "ignored",
  [`${sidecar}/agentLogLevel`]: "ignored",
  [`${sidecar}/bootstrapOverride`]: "ignored",
  [`${sidecar}/capNetBindService`]: "ignored",
  [`${sidecar}/componentLogLevel`]: "ignored",
  [`${sidecar}/controlPlaneAuthPolicy`]: "ignored",
  [`${sidecar}/discoveryAddress`]: "ignored",
  [`${sidecar}/enableCoreDump`]: "ignored",
  [`${sidecar}/extraStatTags`]: "ignored",
  [`${sidecar}/proxyImageType`]: "ignored",
  [`${sidecar}/statsCompression`]: "ignored",
  [`${sidecar}/statsHistogramBuckets`]: "ignored",
  [`${sidecar}/statsInclusionPrefixes`]: "ignored",
  [`${sidecar}/statsInclusionRegexps`]: "ignored",
  [`${sidecar}/statsInclusionSuffixes`]: "ignored",
};

/** Istio's names that have a spelling of Tulle's, which counts where both are there. */
const tulleSpelling = /^(sidecar|inject|proxy)\.istio\.io\//;

/** The pod's word, and the name that it stands under. */
export function annotationOf(
  annotations: Readonly<Record<string, string>>,
  istioName: string,
): { readonly name: string; readonly value: string } | undefined {
  const names = tulleSpelling.test(istioName)
    ? [istioName.replace(".istio.io/", ".tulle.io/"), istioName]
    : [istioName];
  const name = names.find((each) => annotations[each] !== undefined);
  return name === undefined ? undefined : { name, value: annotations[name]! };
}

/** Those of the pod that Istio would read, and nobody here. */
export function ignoredAnnotations(annotations: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(annotations).filter((name) => podAnnotations[name] === "ignored");
}
