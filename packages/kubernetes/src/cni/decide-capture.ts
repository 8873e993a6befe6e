// Whether the CNI plug-in captures a pod, and how. What runs in the pod decides, as the API server has it: a pod that
// only says in an annotation that it was injected would be cut off, one that hides it would go round its proxy.
import { type CapturePlan, planOfAnnotations } from "@tulle/capture";
import { injectedContainers } from "../names.ts";

interface SeenContainer {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

/** What of a pod is read. */
export interface SeenPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly hostNetwork?: boolean;
    readonly nodeName?: string;
    readonly containers: readonly SeenContainer[];
    readonly initContainers?: readonly SeenContainer[];
  };
}

export type CaptureDecision =
  | { readonly kind: "capture"; readonly plan: CapturePlan }
  /** `reason` ends a sentence. */
  | { readonly kind: "leave"; readonly reason: string }
  | { readonly kind: "refuse"; readonly problems: readonly string[] };

const proxyNames: readonly string[] = [injectedContainers.proxy, "istio-proxy"];

export function decideCapture({ metadata, spec }: SeenPod): CaptureDecision {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const leave = (reason: string): CaptureDecision => ({ kind: "leave", reason });
  const has = (name: string): boolean => containers.some((each) => each.name === name);
  if (spec.hostNetwork === true) return leave("it uses its node's network");
  if (has(injectedContainers.capture)) return leave("an init container of its own captures it");
  const proxy = containers.find(({ name }) => proxyNames.includes(name));
  const variable = (name: string): string | undefined => proxy?.env?.find((each) => each.name === name)?.value;
  if (proxy === undefined && !has(injectedContainers.validation)) return leave("it has no proxy");
  if (variable("TULLE_PROXY_TYPE") === "router") return leave("its proxy is a gateway");
  const dns = (variable("DNS_PROXY_ADDR") ?? "") === "" ? undefined : "all";
  const { plan, problems } = planOfAnnotations(metadata.annotations ?? {}, { dns });
  if (plan === "none") return leave("its interceptionMode is NONE");
  if (plan !== undefined) return { kind: "capture", plan };
  return {
    kind: "refuse",
    problems: problems.map(
      ({ place, message }) => `${"annotation" in place ? place.annotation : place.setting} ${message}`,
    ),
  };
}
