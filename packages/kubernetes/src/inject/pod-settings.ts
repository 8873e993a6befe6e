// What a pod's annotations and the values together say of its proxy: settings, or sentences about what is wrong. The
// injector refuses a pod whose annotations make no sense, as Istio's does.
import path from "node:path";
import { planOfAnnotations } from "@tulle/capture/annotations";
import { parseQuantity, type ProxyConfig, quantityIn, readProxyConfig } from "@tulle/config";
import { isLogLevel } from "@tulle/telemetry";
import { images, workloadPaths } from "../names.ts";
import { annotationOf, ignoredAnnotations } from "./annotations.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { annotationsOf, type Pod, type Texts, type Volume } from "./pod.ts";
import type { CaptureDefaults, InjectionValues, ProxyKind, ProxyResources } from "./values.ts";

export interface PodSettings {
  readonly proxy: ProxyKind;
  readonly image: string;
  readonly captureImage: string;
  readonly resources: ProxyResources;
  readonly nativeSidecar: boolean;
  readonly holdsApplication: boolean;
  readonly interceptionMode: "REDIRECT" | "TPROXY" | "NONE";
  /** Options of `tulle capture install`; its defaults are left out. */
  readonly captureArgs: readonly string[];
  /** For the CNI plug-in, which reads annotations alone: what others than the pod itself say. */
  readonly captureAnnotations: Texts;
  readonly logLevel: string;
  readonly rewritesProbes: boolean;
  readonly readiness: {
    readonly initialDelaySeconds: number;
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly proxyConfig: ProxyConfig;
  readonly userVolumes: readonly Volume[];
  readonly userVolumeMounts: readonly PlainObject[];
}

export interface ReadSettings {
  readonly settings: PodSettings;
  /** With any of these the pod is refused. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

const sidecar = "sidecar.istio.io";
const readinessPrefix = "readiness.status.sidecar.istio.io";

export function readSettings(pod: Pod, values: InjectionValues): ReadSettings {
  const problems: string[] = [];
  const annotations = annotationsOf(pod);
  const read = new AnnotationReader(annotations, problems);
  const proxyConfig = readProxyConfig(annotations, "kubernetes");
  const proxy = read.oneOf(`${sidecar}/proxy`, ["tulle", "envoy"]) ?? values.proxy;
  const capture = captureSettings(annotations, values, proxyConfig, problems);
  const settings: PodSettings = {
    proxy,
    image: read.image(`${sidecar}/proxyImage`) ?? imageOf(proxy === "envoy" ? images.proxyEnvoy : images.proxy, values),
    captureImage: imageOf(images.capture, values),
    resources: resourcesOf(read, values.resources, problems),
    nativeSidecar: read.flag(`${sidecar}/nativeSidecar`) ?? values.nativeSidecar,
    holdsApplication: proxyConfig.holdApplicationUntilProxyStarts ?? values.holdsApplication,
    ...capture,
    logLevel: read.logLevel(`${sidecar}/logLevel`) ?? values.logLevel,
    // As in Istio: what is neither yes nor no says nothing.
    rewritesProbes: truth(read.text(`${sidecar}/rewriteAppHTTPProbers`)) ?? values.rewritesProbes,
    readiness: {
      initialDelaySeconds: read.whole(`${readinessPrefix}/initialDelaySeconds`) ?? 0,
      periodSeconds: read.whole(`${readinessPrefix}/periodSeconds`) ?? 2,
      failureThreshold: read.whole(`${readinessPrefix}/failureThreshold`) ?? 30,
    },
    proxyConfig,
    userVolumes: read.named(`${sidecar}/userVolume`).map(([name, source]) => ({ ...source, name })),
    userVolumeMounts: read.named(`${sidecar}/userVolumeMount`).map(([name, mount]) => ({ name, ...mount })),
  };
  const { wrong = [] } = proxyConfig;
  problems.push(...wrong, ...mountProblems(settings.userVolumeMounts));
  if (annotationOf(annotations, "prometheus.istio.io/merge-metrics") !== undefined)
    read.flag("prometheus.istio.io/merge-metrics");
  return {
    settings,
    problems,
    warnings: [
      ...proxyConfig.problems.filter((problem) => !wrong.includes(problem)),
      ...ignoredAnnotations(annotations).map((name) => `the annotation ${name} has no effect`),
    ],
  };
}

/** Folders that the proxy trusts: who it is and whom it believes. */
const ownFolders = [workloadPaths.token.folder, workloadPaths.roots, workloadPaths.pod, workloadPaths.state];

function mountProblems(mounts: readonly PlainObject[]): readonly string[] {
  return mounts.flatMap(({ mountPath }) => {
    const place = typeof mountPath === "string" ? path.posix.resolve("/", mountPath) : "";
    const own = ownFolders.find((folder) => `${place}/`.startsWith(`${folder}/`));
    if (typeof mountPath !== "string" || !mountPath.startsWith("/"))
      return [`${sidecar}/userVolumeMount has no mountPath that begins with "/"`];
    return own === undefined ? [] : [`${sidecar}/userVolumeMount has ${shown(place)}, and ${own} is the proxy's own`];
  });
}

/** `hub/proxy:tag`; the hub takes the place of the names' own folder. */
function imageOf(name: string, { hub, tag }: InjectionValues): string {
  return `${hub}/${name.slice(name.indexOf("/") + 1)}:${tag}`;
}

/** Each quantity by itself: the annotation's, else the values'. A limit below the request follows it, or leads it. */
function resourcesOf(read: AnnotationReader, { requests, limits }: ProxyResources, problems: string[]): ProxyResources {
  const found = { requests: { ...requests }, limits: { ...limits } };
  for (const [resource, word] of [
    ["cpu", "CPU"],
    ["memory", "Memory"],
  ] as const) {
    const request = read.quantity(`${sidecar}/proxy${word}`);
    const limit = read.quantity(`${sidecar}/proxy${word}Limit`);
    if (request !== undefined) found.requests[resource] = request;
    if (limit !== undefined) found.limits[resource] = limit;
    const least = found.requests[resource];
    const most = found.limits[resource];
    if (least === undefined || most === undefined || !isMore(least, most)) continue;
    if (request !== undefined && limit !== undefined)
      problems.push(`${sidecar}/proxy${word} is ${least}, more than ${sidecar}/proxy${word}Limit, ${most}`);
    else if (limit === undefined) found.limits[resource] = least;
    else found.requests[resource] = most;
  }
  return found;
}

function isMore(a: string, b: string): boolean {
  const [left, right] = [parseQuantity(a), parseQuantity(b)];
  return (
    left !== undefined && right !== undefined && left.numerator * right.denominator > right.numerator * left.denominator
  );
}

/** Annotation of a pod → option of `tulle capture install`, and the values' name for it. */
const captureOptions = [
  ["includeInboundPorts", "-b", "includeInboundPorts"],
  ["excludeInboundPorts", "-d", "excludeInboundPorts"],
  ["includeOutboundIPRanges", "-i", "includeOutboundIpRanges"],
  ["excludeOutboundIPRanges", "-x", "excludeOutboundIpRanges"],
  ["includeOutboundPorts", "-q", "includeOutboundPorts"],
  ["excludeOutboundPorts", "-o", "excludeOutboundPorts"],
  ["excludeInterfaces", "-c", undefined],
  ["kubevirtInterfaces", "-k", undefined],
] as const satisfies readonly (readonly [string, string, keyof CaptureDefaults | undefined])[];

const ownInboundPorts = "15020,15021,15090";

function captureSettings(
  annotations: Texts,
  values: InjectionValues,
  { interceptionMode: ofConfig }: ProxyConfig,
  problems: string[],
): Pick<PodSettings, "interceptionMode" | "captureArgs" | "captureAnnotations"> {
  const texts: Record<string, string> = {};
  const ofOthers: Record<string, string> = {};
  const args: string[] = [];
  for (const [name, option, valueName] of captureOptions) {
    const annotation = `traffic.sidecar.istio.io/${name}`;
    const alias = name === "kubevirtInterfaces" ? annotations["istio.io/reroute-virtual-interfaces"] : undefined;
    const value = annotations[annotation] ?? alias ?? (valueName === undefined ? undefined : values.capture[valueName]);
    if (value === undefined) continue;
    texts[annotation] = value;
    if (annotations[annotation] === undefined && alias === undefined) ofOthers[annotation] = value;
    const isExclusion = name === "excludeInboundPorts";
    args.push(option, isExclusion ? [value, ownInboundPorts].filter((each) => each.trim() !== "").join(",") : value);
  }
  const modeAnnotation = "sidecar.istio.io/interceptionMode";
  const mode = annotationOf(annotations, modeAnnotation)?.value ?? ofConfig ?? "REDIRECT";
  if (annotations[modeAnnotation] === undefined && mode !== "REDIRECT") ofOthers[modeAnnotation] = mode;
  if (mode === "TPROXY") args.push("-m", mode);
  const planned = planOfAnnotations({ ...texts, [modeAnnotation]: mode });
  for (const { place, message } of planned.problems)
    problems.push(`${"annotation" in place ? place.annotation : place.setting} ${message}`);
  return {
    interceptionMode: mode === "TPROXY" || mode === "NONE" ? mode : "REDIRECT",
    captureArgs: args,
    captureAnnotations: ofOthers,
  };
}

/** Go's strconv.ParseBool, as Istio reads annotations. */
function truth(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  return ["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : undefined;
}

/** What Docker and containerd take for the name of an image, roughly: no spaces, no shell, no URL. */
const imageName = /^[a-z0-9][a-zA-Z0-9._/:@-]{0,1023}$/;

class AnnotationReader {
  readonly #annotations: Texts;
  readonly #problems: string[];

  constructor(annotations: Texts, problems: string[]) {
    this.#annotations = annotations;
    this.#problems = problems;
  }

  text(istioName: string): string | undefined {
    return annotationOf(this.#annotations, istioName)?.value;
  }

  oneOf<T extends string>(istioName: string, allowed: readonly T[]): T | undefined {
    return this.#checked(istioName, (value) => allowed.find((each) => each === value), allowed.join(" or "));
  }

  flag(istioName: string): boolean | undefined {
    return this.#checked(istioName, truth, "true or false");
  }

  whole(istioName: string): number | undefined {
    const read = (value: string): number | undefined => {
      const number = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
      return number < 2 ** 31 ? number : undefined;
    };
    return this.#checked(istioName, read, "a whole number");
  }

  quantity(istioName: string): string | undefined {
    const read = (value: string): string | undefined => {
      const quantity = parseQuantity(value);
      const isPositive = quantity !== undefined && quantityIn(quantity, { numerator: 1n, denominator: 1000n }) > 0n;
      return isPositive ? value : undefined;
    };
    return this.#checked(istioName, read, 'a quantity such as "100m" or "128Mi"');
  }

  image(istioName: string): string | undefined {
    return this.#checked(istioName, (value) => (imageName.test(value) ? value : undefined), "the name of an image");
  }

  logLevel(istioName: string): string | undefined {
    return this.#checked(istioName, (value) => (isLogLevel(value) ? value : undefined), "a log level");
  }

  /** A JSON object of objects, by name. */
  named(istioName: string): readonly (readonly [string, PlainObject])[] {
    const read = (value: string): readonly (readonly [string, PlainObject])[] | undefined => {
      const parsed = value.length > maxVolumeCharacters ? undefined : parseJson(value);
      if (!isPlainObject(parsed)) return undefined;
      const entries = Object.entries(parsed);
      return entries.every((each): each is [string, PlainObject] => isPlainObject(each[1])) ? entries : undefined;
    };
    const expected = `a JSON object of at most ${maxVolumeCharacters} characters with an object for each name of a volume`;
    return this.#checked(istioName, read, expected) ?? [];
  }

  #checked<T>(istioName: string, read: (value: string) => T | undefined, expected: string): T | undefined {
    const found = annotationOf(this.#annotations, istioName);
    if (found === undefined) return undefined;
    const value = read(found.value);
    if (value === undefined) this.#problems.push(`${found.name} is ${shown(found.value)}, not ${expected}`);
    return value;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Of volumes in an annotation. */
const maxVolumeCharacters = 8192;

/** Annotations may have 256 KiB. */
function shown(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}
