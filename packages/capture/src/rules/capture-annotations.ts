// A pod's annotations → the plan of its capture, with Istio's names and meaning (traffic.sidecar.istio.io/…), and what
// is wrong with them as Istio's injector would refuse it.
import { type CapturePlan, type CaptureSettings, type CaptureSettingName, planCapture } from "./capture-plan.ts";
import { parseDownwardFile } from "./downward-file.ts";

const traffic = "traffic.sidecar.istio.io";
const modeAnnotation = "sidecar.istio.io/interceptionMode";
const settingOf = {
  [`${traffic}/includeInboundPorts`]: "includeInboundPorts",
  [`${traffic}/excludeInboundPorts`]: "excludeInboundPorts",
  [`${traffic}/includeOutboundIPRanges`]: "includeOutboundIpRanges",
  [`${traffic}/excludeOutboundIPRanges`]: "excludeOutboundIpRanges",
  [`${traffic}/includeOutboundPorts`]: "includeOutboundPorts",
  [`${traffic}/excludeOutboundPorts`]: "excludeOutboundPorts",
  [`${traffic}/excludeInterfaces`]: "excludeInterfaces",
  [`${traffic}/kubevirtInterfaces`]: "virtualInterfaces",
  // Istio's newer name for the same.
  "istio.io/reroute-virtual-interfaces": "virtualInterfaces",
} as const satisfies Record<string, CaptureSettingName>;

/** Those that say something of capture. */
export const captureAnnotations: readonly string[] = [...Object.keys(settingOf), modeAnnotation];

/** Ports that stay excluded whatever an annotation adds: the injector names them beside it. */
const ownExcludedInboundPorts = "15020,15021,15090";

/** `place`: the annotation's name, or the setting's, where the value is not an annotation's. */
export interface AnnotationProblem {
  readonly place: { readonly annotation: string } | { readonly setting: CaptureSettingName };
  readonly message: string;
}

export type AnnotatedPlan =
  /** `none`: interceptionMode NONE asks for no capture at all. */
  | { readonly plan: CapturePlan | "none"; readonly problems: readonly [] }
  | { readonly plan: undefined; readonly problems: readonly AnnotationProblem[] };

/** `settings` come before what annotations say. */
export function planOfAnnotations(
  annotations: Readonly<Record<string, string>>,
  settings: CaptureSettings = {},
): AnnotatedPlan {
  const problems: AnnotationProblem[] = [];
  const wanted: { [Name in (typeof settingOf)[keyof typeof settingOf]]?: string } = {};
  const sources = new Map<CaptureSettingName, string>();
  for (const [annotation, setting] of Object.entries(settingOf)) {
    const text = annotations[annotation];
    if (text === undefined || settings[setting] !== undefined) continue;
    sources.set(setting, annotation);
    wanted[setting] = setting === "excludeInboundPorts" ? withOwnPorts(text) : text;
    const bare = setting.endsWith("IpRanges") ? addressWithoutPrefix(text) : undefined;
    if (bare === undefined) continue;
    const message = `has ${JSON.stringify(bare)}, which has no length of a prefix, such as 10.0.0.1/32`;
    problems.push({ place: { annotation }, message });
  }
  const mode = settings.mode ?? annotations[modeAnnotation] ?? "REDIRECT";
  if (mode !== "REDIRECT" && mode !== "TPROXY" && mode !== "NONE") {
    const message = `is ${JSON.stringify(mode)}, not REDIRECT, TPROXY or NONE`;
    problems.push({ place: { annotation: modeAnnotation }, message });
  }
  const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
  const planned = planCapture({ ...wanted, ...given, mode: mode === "TPROXY" ? mode : "REDIRECT" });
  for (const { setting, message } of planned.problems) {
    const annotation = sources.get(setting);
    problems.push({ place: annotation === undefined ? { setting } : { annotation }, message });
  }
  if (problems.length > 0 || planned.plan === undefined) return { plan: undefined, problems };
  return { plan: mode === "NONE" ? "none" : planned.plan, problems: [] };
}

function withOwnPorts(text: string): string {
  return text.trim() === "" ? ownExcludedInboundPorts : `${text},${ownExcludedInboundPorts}`;
}

function addressWithoutPrefix(text: string): string | undefined {
  const entries = text.split(",").map((entry) => entry.trim());
  return entries.find((entry) => entry !== "" && entry !== "*" && !entry.includes("/"));
}

/** Those of a file of a `downwardAPI` volume that say something of capture. @throws {SyntaxError} naming one */
export function parseAnnotationsFile(text: string): Readonly<Record<string, string>> {
  return parseDownwardFile(text, (name) => captureAnnotations.includes(name));
}
