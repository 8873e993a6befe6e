// Asks somebody else whether a request may go on (extensions.filters.http.ext_authz.v3.ExtAuthz). While the answer is
// awaited the request waits; so does its beginning where the authorizer wants to see the body.
import type { Logger } from "@tulle/telemetry";
import { type FilterStatus, type HttpFilter, type HttpStream, StreamSlot } from "../../../http/filter.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import type { ResponseHead } from "../../../http/message.ts";
import { withParameters } from "./query-parameters.ts";
import type {
  Allowed,
  AuthorizationOutcome,
  Denied,
  HeaderPair,
  ResponseHeaderChange,
} from "./authorization-outcome.ts";
import { checkedBody, shownHeaders } from "./check-request.ts";
import type { BodySettings, ExtAuthzConfig, ExtAuthzRouteConfig } from "./ext-authz-config.ts";
import type { ExtAuthzStats } from "./ext-authz-stats.ts";

export interface ExtAuthzFilterOptions {
  readonly name: string;
  readonly config: ExtAuthzConfig;
  readonly stats: ExtAuthzStats;
  readonly log: Logger;
}

const metadataNamespace = "envoy.filters.http.ext_authz";
const failureModeHeader = "x-envoy-auth-failure-mode-allowed";

/** What the filter still has to do for a stream. */
interface Pending {
  /** Of the body that is being gathered; undefined once the authorizer is asked. */
  gathers: BodySettings | undefined;
  readonly route: ExtAuthzRouteConfig | undefined;
  readonly startedMs: number;
  cancel: (() => void) | undefined;
  responseChanges: readonly ResponseHeaderChange[];
}

export class ExtAuthzFilter implements HttpFilter {
  readonly name: string;
  readonly #config: ExtAuthzConfig;
  readonly #stats: ExtAuthzStats;
  readonly #log: Logger;
  readonly #pending = new StreamSlot<Pending>();

  constructor({ name, config, stats, log }: ExtAuthzFilterOptions) {
    this.name = name;
    this.#config = config;
    this.#stats = stats;
    this.#log = log;
  }

  onRequestHead(stream: HttpStream, endStream: boolean): FilterStatus {
    const config = this.#config;
    // As Envoy: where nothing is to be reached nobody is asked.
    if (stream.routeMatch === undefined) return "continue";
    const route = stream.routeMatch.route.perFilterConfig.get(this.name) as ExtAuthzRouteConfig | undefined;
    if (route?.isDisabled === true) return "continue";
    if (!this.#isEnabled(stream)) {
      this.#stats.disabled.increment();
      if (!config.deniesWhenDisabled) return "continue";
      this.#refuseOnError(stream);
      return "stop";
    }
    const body = route?.ignoresBody === true ? undefined : (route?.body ?? config.body);
    const gathers = endStream || stream.request.upgrade !== undefined ? undefined : body;
    const pending: Pending = {
      gathers,
      route,
      startedMs: stream.dataPath.turn.nowMs,
      cancel: undefined,
      responseChanges: [],
    };
    this.#pending.set(stream, pending);
    if (gathers === undefined) this.#ask(stream, pending, undefined);
    else stream.raiseWaitingLimit(gathers.maxBytes);
    return "stop";
  }

  onRequestWaiting(stream: HttpStream, endStream: boolean): void {
    const pending = this.#pending.get(stream);
    const settings = pending?.gathers;
    if (pending === undefined || settings === undefined) return;
    const bytes = stream.waitingBytes;
    if (bytes > settings.maxBytes && !settings.allowsPartial) {
      pending.gathers = undefined;
      const details = "request_payload_too_large";
      stream.sendLocalReply({ status: 413, body: "Payload Too Large", details });
      return;
    }
    if (endStream) this.#ask(stream, pending, settings);
    else if (settings.allowsPartial && bytes >= settings.maxBytes) this.#askSoon(stream, pending, settings);
  }

  /** What the same read has brought belongs to it, so that a body of just that size is not called a part. */
  #askSoon(stream: HttpStream, pending: Pending, settings: BodySettings): void {
    queueMicrotask(() => {
      if (pending.gathers === undefined || this.#pending.get(stream) !== pending) return;
      stream.dataPath.turn.run(() => this.#ask(stream, pending, settings));
    });
  }

  onResponseHead(stream: HttpStream, response: ResponseHead): void {
    for (const { action, header } of this.#pending.get(stream)?.responseChanges ?? []) {
      const [name, value] = header;
      const isThere = response.headers.has(name);
      if (action === "add" || (action === "add_if_absent" && !isThere)) response.headers.append(name, value);
      else if (action === "set" || (action === "set_if_present" && isThere)) response.headers.set(name, value);
    }
  }

  onComplete(stream: HttpStream): void {
    const pending = this.#pending.get(stream);
    if (pending === undefined) return;
    pending.cancel?.();
    this.#pending.delete(stream);
  }

  #isEnabled({ info, dataPath }: HttpStream): boolean {
    const { enabledShare, enabledBy } = this.#config;
    if (enabledShare < 1 && dataPath.random() >= enabledShare) return false;
    return enabledBy === undefined || enabledBy(info.dynamicMetadata);
  }

  #ask(stream: HttpStream, pending: Pending, bodySettings: BodySettings | undefined): void {
    const { authorizer, showsHeader, metadataNamespaces } = this.#config;
    const { request, info, dataPath } = stream;
    pending.gathers = undefined;
    const body = bodySettings && checkedBody(stream, bodySettings);
    const isPartial = bodySettings && stream.waitingBytes > body!.bytes.length;
    const metadata = Object.fromEntries(
      metadataNamespaces.flatMap((name) => {
        const found = info.dynamicMetadata?.[name];
        return found === undefined ? [] : [[name, found]];
      }),
    );
    const headers = shownHeaders(request, showsHeader, isPartial);
    const contextExtensions = pending.route?.contextExtensions ?? {};
    const check = { info, dataPath, request, headers, body, contextExtensions, metadata };
    const call = authorizer.check(check, (outcome) => {
      pending.cancel = undefined;
      this.#onOutcome(stream, pending, outcome);
    });
    pending.cancel = () => call.cancel();
  }

  #onOutcome(stream: HttpStream, pending: Pending, outcome: AuthorizationOutcome): void {
    if (this.#log.debugEnabled) this.#log.debug("external authorization", { outcome: outcome.kind });
    const ofCluster = this.#statsOfCluster(stream);
    if (outcome.kind !== "error") this.#keepMetadata(stream, pending, outcome);
    switch (outcome.kind) {
      case "allowed":
        this.#stats.ok.increment();
        ofCluster?.ok.increment();
        pending.responseChanges = outcome.response;
        this.#changeRequest(stream, outcome);
        return stream.continueRequest();
      case "denied":
        this.#stats.denied.increment();
        ofCluster?.denied.increment();
        return this.#deny(stream, outcome);
      case "error":
        this.#stats.error.increment();
        ofCluster?.error.increment();
        if (!this.#config.failureModeAllow) return this.#refuseOnError(stream);
        this.#stats.failureModeAllowed.increment();
        ofCluster?.failureModeAllowed.increment();
        if (this.#config.failureModeHeader) stream.request.headers.append(failureModeHeader, "true");
        return stream.continueRequest();
    }
  }

  #statsOfCluster(stream: HttpStream): ReturnType<ExtAuthzStats["ofCluster"]> | undefined {
    const action = stream.routeMatch?.action;
    const cluster = action?.type === "forward" ? action.clusterSlot.current : undefined;
    return cluster && this.#stats.ofCluster(cluster.observabilityName);
  }

  #keepMetadata({ info, dataPath }: HttpStream, { startedMs }: Pending, { kind, metadata }: Allowed | Denied): void {
    if (metadata === undefined) return;
    if (!this.#config.takesMetadata) {
      this.#stats.ignoredMetadata.increment();
      return;
    }
    const durationMs = Math.floor(dataPath.turn.nowMs - startedMs);
    const all = (info.dynamicMetadata ??= {});
    all[metadataNamespace] = {
      ...all[metadataNamespace],
      ...metadata,
      ...(kind === "allowed" && { ext_authz_duration: durationMs }),
    };
  }

  #changeRequest(stream: HttpStream, outcome: Allowed): void {
    const { request } = stream;
    const { set, append, add, remove, setParameters, removeParameters } = outcome;
    for (const pair of set) setRequestField(stream, pair);
    for (const [name, value] of add) request.headers.append(name, value);
    for (const [name, value] of append) {
      const before = request.headers.getJoined(name);
      if (before !== undefined) request.headers.set(name, `${before},${value}`);
    }
    for (const name of remove) {
      if (!name.startsWith(":") && name !== "host") request.headers.remove(name);
    }
    const hasParameters = setParameters.length > 0 || removeParameters.length > 0;
    if (hasParameters) request.path = withParameters(request.path, setParameters, removeParameters);
    const isChanged = [set, append, add, remove].some(({ length }) => length > 0) || hasParameters;
    if (isChanged && this.#config.clearsRouteCache) stream.clearRouteCache();
  }

  #deny(stream: HttpStream, { status, headers, body }: Denied): void {
    const { maxDeniedBodyBytes } = this.#config;
    const isCut = maxDeniedBodyBytes > 0 && body.length > maxDeniedBodyBytes;
    const sent = new HeaderMap();
    for (const [name, value] of headers) {
      // Framing is the connection's own affair, and nothing has no type.
      if (!framing.has(name) && (body.length > 0 || name !== "content-type")) sent.append(name, value);
    }
    stream.sendLocalReply({
      status,
      body: isCut ? body.subarray(0, maxDeniedBodyBytes) : body,
      headers: sent,
      flag: "UAEX",
      details: "ext_authz_denied",
    });
  }

  #refuseOnError(stream: HttpStream): void {
    const { statusOnError: status } = this.#config;
    stream.sendLocalReply({ status, body: "", flag: "UAEX", details: "ext_authz_error" });
  }
}

const framing = new Set(["connection", "keep-alive", "content-length", "transfer-encoding", "host", "date"]);

/** Parts of the request line have names in Envoy's header maps. */
function setRequestField({ request }: HttpStream, [name, value]: HeaderPair): void {
  if (name === ":path") request.path = value;
  else if (name === ":method") request.method = value;
  else if (name === ":authority" || name === "host") request.authority = value;
  else if (!name.startsWith(":")) request.headers.set(name, value);
}
