// What whoever installs the mesh decides about all proxies that are injected. Names of a values file are Istio's, as
// far as Istio has them.
import { isLogLevel, type LogLevel } from "@tulle/telemetry";
import { controlPlaneHost, controlPlanePorts, defaultRevision } from "../names.ts";
import { isPlainObject } from "./plain-object.ts";

export type ProxyKind = "tulle" | "envoy";

export interface ProxyResources {
  readonly requests: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, string>>;
}

/** Defaults of what annotations `traffic.sidecar.istio.io/…` say; undefined = the annotation's own default. */
export interface CaptureDefaults {
  readonly includeInboundPorts?: string;
  readonly excludeInboundPorts?: string;
  readonly includeOutboundIpRanges?: string;
  readonly excludeOutboundIpRanges?: string;
  readonly includeOutboundPorts?: string;
  readonly excludeOutboundPorts?: string;
}

/** What says nothing, as Istio's charts and Tulle's own have it. */
const captureDefaults: Required<CaptureDefaults> = {
  includeInboundPorts: "*",
  excludeInboundPorts: "",
  includeOutboundIpRanges: "*",
  excludeOutboundIpRanges: "",
  includeOutboundPorts: "",
  excludeOutboundPorts: "",
};

export interface InjectionValues {
  /** In front of the images' own names; none for `tulle/proxy` as it is. */
  readonly hub: string;
  readonly tag: string;
  readonly imagePullPolicy: string | undefined;
  readonly imagePullSecrets: readonly string[];
  readonly revision: string;
  /** `host:port` */
  readonly controlPlaneAddress: string;
  readonly proxy: ProxyKind;
  readonly nativeSidecar: boolean;
  /** Plain containers hold the application back; native ones do in any case. */
  readonly holdsApplication: boolean;
  /** The CNI plug-in makes the capture's rules, so that pods need no capability. */
  readonly cni: boolean;
  readonly resources: ProxyResources;
  readonly logLevel: LogLevel;
  readonly trustDomain: string;
  readonly clusterDomain: string;
  readonly clusterId: string;
  readonly network: string | undefined;
  readonly rewritesProbes: boolean;
  readonly capture: CaptureDefaults;
  /** Of pods that name none. */
  readonly defaultTemplates: readonly string[];
  /** Name → what is laid over the pod, in YAML. */
  readonly templates: Readonly<Record<string, string>>;
}

export function defaultValues(version: string, revision = defaultRevision): InjectionValues {
  return {
    hub: "tulle",
    tag: version,
    imagePullPolicy: undefined,
    imagePullSecrets: [],
    revision,
    controlPlaneAddress: `${controlPlaneHost(revision)}:${controlPlanePorts.xds.port}`,
    proxy: "tulle",
    nativeSidecar: true,
    holdsApplication: true,
    cni: false,
    resources: {
      requests: { cpu: "100m", memory: "160Mi" },
      limits: { cpu: "2", memory: "512Mi" },
    },
    logLevel: "info",
    trustDomain: "cluster.local",
    clusterDomain: "cluster.local",
    clusterId: "Kubernetes",
    network: undefined,
    rewritesProbes: true,
    capture: {},
    defaultTemplates: ["sidecar"],
    templates: {},
  };
}

export interface ReadValues {
  readonly values: InjectionValues;
  /** With any of these the values are not to be used. */
  readonly problems: readonly string[];
}

/** A values file may hold what is for others: names that are not asked for are passed over. */
export function readValues(content: unknown, defaults: InjectionValues): ReadValues {
  const problems: string[] = [];
  const file = new ValuesFile(content, problems);
  const revision = file.text("revision") ?? defaults.revision;
  const proxy = file.text("global.proxy.kind");
  if (proxy !== undefined && proxy !== "tulle" && proxy !== "envoy")
    problems.push(`global.proxy.kind is ${JSON.stringify(proxy)}, not "tulle" or "envoy"`);
  const logLevel = file.text("global.proxy.logLevel");
  if (logLevel !== undefined && !isLogLevel(logLevel))
    problems.push(`global.proxy.logLevel is ${JSON.stringify(logLevel)}, no log level`);
  const quantities = (place: string): Readonly<Record<string, string>> =>
    file.texts(`global.proxy.resources.${place}`) ?? {};
  const capture: CaptureDefaults = Object.fromEntries(
    Object.entries({
      includeInboundPorts: file.text("global.proxy.includeInboundPorts"),
      excludeInboundPorts: file.text("global.proxy.excludeInboundPorts"),
      includeOutboundIpRanges: file.text("global.proxy.includeIPRanges"),
      excludeOutboundIpRanges: file.text("global.proxy.excludeIPRanges"),
      includeOutboundPorts: file.text("global.proxy.includeOutboundPorts"),
      excludeOutboundPorts: file.text("global.proxy.excludeOutboundPorts"),
    }).filter(([name, value]) => value !== undefined && value !== captureDefaults[name as keyof CaptureDefaults]),
  );
  const address = file.text("global.proxy.discoveryAddress");
  const values: InjectionValues = {
    hub: file.text("global.hub") ?? defaults.hub,
    tag: file.text("global.tag") ?? defaults.tag,
    imagePullPolicy: file.text("global.imagePullPolicy") || defaults.imagePullPolicy,
    imagePullSecrets: file.list("global.imagePullSecrets") ?? defaults.imagePullSecrets,
    revision,
    controlPlaneAddress:
      address ??
      (revision === defaults.revision
        ? defaults.controlPlaneAddress
        : `${controlPlaneHost(revision)}:${controlPlanePorts.xds.port}`),
    proxy: proxy === "envoy" || proxy === "tulle" ? proxy : defaults.proxy,
    nativeSidecar: file.flag("global.proxy.nativeSidecar") ?? defaults.nativeSidecar,
    holdsApplication: file.flag("global.proxy.holdApplicationUntilProxyStarts") ?? defaults.holdsApplication,
    cni: file.flag("cni.enabled") ?? file.flag("istio_cni.enabled") ?? defaults.cni,
    resources: {
      requests: { ...defaults.resources.requests, ...quantities("requests") },
      limits: { ...defaults.resources.limits, ...quantities("limits") },
    },
    logLevel: isLogLevel(logLevel ?? "") ? (logLevel as LogLevel) : defaults.logLevel,
    trustDomain: file.text("global.trustDomain") || defaults.trustDomain,
    clusterDomain: file.text("global.proxy.clusterDomain") || defaults.clusterDomain,
    clusterId: file.text("global.multiCluster.clusterName") || defaults.clusterId,
    network: file.text("global.network") || defaults.network,
    rewritesProbes: file.flag("sidecarInjectorWebhook.rewriteAppHTTPProbe") ?? defaults.rewritesProbes,
    capture: { ...defaults.capture, ...capture },
    defaultTemplates: file.list("sidecarInjectorWebhook.defaultTemplates") ?? defaults.defaultTemplates,
    templates: { ...defaults.templates, ...file.texts("sidecarInjectorWebhook.templates") },
  };
  return { values, problems };
}

class ValuesFile {
  readonly #content: unknown;
  readonly #problems: string[];

  constructor(content: unknown, problems: string[]) {
    this.#content = content ?? {};
    this.#problems = problems;
    if (!isPlainObject(this.#content)) problems.push("the values are no fields and values");
  }

  /** Numbers and flags are taken as they are written: `tag: 1.2`. */
  text(place: string): string | undefined {
    const value = this.#at(place);
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
    return this.#wrong(place, "a text");
  }

  flag(place: string): boolean | undefined {
    const value = this.#at(place);
    if (value === undefined || value === null || typeof value === "boolean") return value ?? undefined;
    return this.#wrong(place, "true or false");
  }

  /** Empty ones say nothing. Items may be `{ name: … }`, as Kubernetes has them. */
  list(place: string): readonly string[] | undefined {
    const value = this.#at(place);
    if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return undefined;
    const names = Array.isArray(value)
      ? value.map((each: unknown) => (isPlainObject(each) ? each["name"] : each))
      : undefined;
    if (names?.every((each) => typeof each === "string") === true) return names;
    return this.#wrong(place, "a list of texts");
  }

  texts(place: string): Readonly<Record<string, string>> | undefined {
    const value = this.#at(place);
    if (value === undefined || value === null) return undefined;
    if (
      isPlainObject(value) &&
      Object.values(value).every((each) => typeof each === "string" || typeof each === "number")
    )
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, String(each)]));
    return this.#wrong(place, "names with a text each");
  }

  #at(place: string): unknown {
    let value: unknown = this.#content;
    for (const name of place.split(".")) {
      if (!isPlainObject(value) || !Object.hasOwn(value, name)) return undefined;
      value = value[name];
    }
    return value;
  }

  #wrong(place: string, expected: string): undefined {
    this.#problems.push(`${place} is not ${expected}`);
    return undefined;
  }
}
