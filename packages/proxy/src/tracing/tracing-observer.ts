// The third observer of a stream: its span (Envoy: `ActiveStream::traceRequest`, `finalizeDownstreamSpan`,
// `UpstreamRequest`'s own span).
import { type Counter, newSpanId } from "@tulle/telemetry";
import type { StreamObserver, TryEnd } from "../http-connection-manager/stream-observer.ts";
import type { RequestHead, ResponseHead } from "../http/message.ts";
import { type ResponseFlag, responseFlags } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { RouteTracing } from "../route/route-table.ts";
import type { Clock } from "../worker/clock.ts";
import type { ActiveSpan, SpanEvent, TraceReason, SpanHead, SpanKind, TagSink } from "./active-span.ts";
import type { RedactedNames } from "../format/redacted-names.ts";
import type { CustomTag, SamplingShares } from "./custom-tag.ts";
import { writeCustomTag } from "./custom-tags.ts";
import { decideTrace, type RequestIdRules } from "./sampling.ts";
import { givenTagNames, isError, tagGrpcOutcome, tagOutcome, tagRequest, type TagSettings } from "./span-tags.ts";
import { tellMoments } from "./stream-moments.ts";
import type { Tracer } from "./tracer.ts";

/** HttpConnectionManager.tracing, compiled. */
export interface TracingSettings {
  readonly tracer: Tracer;
  readonly shares: SamplingShares;
  readonly requestId: RequestIdRules;
  /** The listener is OUTBOUND. */
  readonly isEgress: boolean;
  /** spawn_upstream_span: each try has a span, and that of the request is a server's. */
  readonly spawnsTrySpans: boolean;
  /** verbose */
  readonly isVerbose: boolean;
  /** no_context_propagation */
  readonly passesContextOn: boolean;
  readonly operation: RouteTracing["operation"];
  readonly upstreamOperation: RouteTracing["upstreamOperation"];
  readonly tags: readonly CustomTag[];
  readonly tagSettings: TagSettings;
  readonly random: () => number;
  readonly clock: Clock;
  readonly reasons: Readonly<Record<TraceReason, Counter>>;
}

const decoratorHeader = "x-envoy-decorator-operation";
const maxEvents = 32;

export class TracingObserver implements StreamObserver {
  readonly #settings: TracingSettings;
  readonly #kind: SpanKind;
  /** Tags of every span, not of a route's alone, stand in the place of given ones. */
  readonly #replacesGiven: boolean;

  constructor(settings: TracingSettings) {
    this.#settings = settings;
    this.#replacesGiven = settings.tags.some(replacesGiven);
    this.#kind = settings.isEgress && !settings.spawnsTrySpans ? "client" : "server";
  }

  onRoute(info: StreamInfo): void {
    const { tracer, reasons, requestId, random } = this.#settings;
    const request = info.request!;
    const shares = info.route?.tracing?.shares ?? this.#settings.shares;
    const reason = decideTrace(request.headers, shares, requestId, random);
    reasons[reason].increment();
    info.traceReason = reason;
    const span = tracer.start(request, this.#kind, reason !== "not_traceable", info);
    span.tracer = tracer;
    info.span = span;
    this.#name(span, request, info);
  }

  #name(span: ActiveSpan, { headers }: RequestHead, info: StreamInfo): void {
    const format = info.route?.tracing?.operation ?? this.#settings.operation;
    if (format !== undefined) {
      // Decorators have no say then, here or elsewhere.
      span.operation = format(info, this.#settings.tagSettings.redactedNames);
      return;
    }
    const decorator = info.route?.decorator;
    span.operation = decorator?.operation;
    const propagated = decorator?.propagates === true ? decorator.operation : undefined;
    if (this.#settings.isEgress) {
      if (propagated !== undefined) headers.set(decoratorHeader, propagated);
      return;
    }
    const told = headers.get(decoratorHeader);
    if (told === undefined) span.decoration = propagated;
    else {
      headers.remove(decoratorHeader);
      if (told !== "") span.operation = told;
    }
  }

  onTry(info: StreamInfo): void {
    const { span, request } = info;
    if (span === undefined || request === undefined) return;
    const { tracer, spawnsTrySpans, passesContextOn } = this.#settings;
    span.tryCount += 1;
    if (spawnsTrySpans) {
      span.trySpanId = newSpanId();
      span.tryStartMs = this.#nowMs(info);
    }
    if (passesContextOn && (spawnsTrySpans || span.tryCount === 1)) {
      tracer.inject(span, request.headers, spawnsTrySpans ? span.trySpanId : span.spanId);
    }
  }

  onTryEnd(info: StreamInfo, end: TryEnd): void {
    const { span } = info;
    if (span?.isSampled !== true) return;
    const timeMs = this.#nowMs(info);
    if (span.trySpanId !== "") this.#reportTry(span, info, end, timeMs);
    if (!end.isRetried) return;
    const events = (span.events ??= []);
    if (events.length < maxEvents) events.push({ timeMs, name: "retry", attributes: retryAttributes(span, info, end) });
  }

  onResponse({ span }: StreamInfo, response: ResponseHead): void {
    if (span === undefined) return;
    if (!this.#settings.isEgress) {
      if (span.decoration !== undefined) response.headers.set(decoratorHeader, span.decoration);
      return;
    }
    const told = response.headers.get(decoratorHeader);
    if (told === undefined) return;
    response.headers.remove(decoratorHeader);
    if (told !== "" && this.#settings.operation === undefined) span.operation = told;
  }

  onEnd(info: StreamInfo): void {
    const { span, request } = info;
    if (span?.isSampled !== true || request === undefined) return;
    const endMs = info.startTimeMs + info.durationMs;
    if (span.trySpanId !== "") this.#reportTry(span, info, lastTryEnd(info), endMs);
    const { tracer, isEgress, tagSettings } = this.#settings;
    this.#begin(span, info, {
      spanId: span.spanId,
      parentSpanId: span.parentSpanId,
      name: span.operation ?? tracer.nameOf(request, isEgress),
      kind: this.#kind,
      isOfRequest: true,
      startMs: info.startTimeMs,
      endMs,
    });
    let grpc: number | undefined;
    this.#tag(info, (sink) => {
      tagRequest(info, request, tagSettings, sink);
      tagOutcome(info, info.responseCode, info.responseFlags, sink);
      grpc = tagGrpcOutcome(info, request, info.response, sink);
      if (isError(info.responseCode, grpc)) sink.tag("error", "true");
      const revision = revisionOf(info);
      if (revision !== undefined) sink.tag("tulle.config.revision", revision);
    });
    for (const { timeMs, name, attributes } of span.events ?? []) tracer.event(timeMs, name, attributes);
    if ((info.responseFlags & timeoutFlags) !== 0) tracer.event(endMs, "timeout", [["error.type", "timeout"]]);
    tracer.end(info.responseCode, grpc);
  }

  #begin(span: ActiveSpan, info: StreamInfo, head: SpanHead): void {
    const { tracer, isVerbose } = this.#settings;
    tracer.begin(span, head);
    if (isVerbose) tellMoments(info, head, tracer);
  }

  #reportTry(span: ActiveSpan, info: StreamInfo, end: TryEnd, endMs: number): void {
    const { tracer, upstreamOperation, tagSettings } = this.#settings;
    const { cluster, request, upstreamHost } = info;
    const operation = info.route?.tracing?.upstreamOperation ?? upstreamOperation;
    this.#begin(span, info, {
      spanId: span.trySpanId,
      parentSpanId: span.spanId,
      name: operation?.(info, tagSettings.redactedNames) ?? `router ${cluster?.observabilityName ?? ""} egress`,
      kind: "client",
      isOfRequest: false,
      startMs: span.tryStartMs,
      endMs,
    });
    span.trySpanId = "";
    let grpc: number | undefined;
    this.#tag(info, (sink) => {
      if (span.tryCount > 1) sink.tag("retry.count", String(span.tryCount - 1));
      if (end.isCanceled) sink.tag("canceled", "true");
      if (end.reason !== undefined) sink.tag("error.reason", end.reason);
      // Of a tunnel that ends here the host is sent bytes alone.
      sink.tag("http.protocol", info.upstreamProtocol ?? "-");
      if (upstreamHost !== undefined) {
        sink.tag("upstream_address", upstreamHost.addressText);
        sink.tag("peer.address", upstreamHost.addressText);
      }
      tagOutcome(info, end.status, end.flag === undefined ? 0 : responseFlags[end.flag].bit, sink);
      if (end.status !== 0) grpc = tagGrpcOutcome(info, request, info.response, sink);
      if (isError(end.status, grpc) || end.reason !== undefined) sink.tag("error", "true");
    });
    tracer.end(end.status, grpc);
  }

  /** Milliseconds since 1970, as the stream's beginning has them, moved on by the clock that never leaps. */
  #nowMs(info: StreamInfo): number {
    return info.startTimeMs + this.#settings.clock.monotonicMs() - info.startMonotonicMs;
  }

  /** Tags of the configuration replace others of their name, the route's the connection manager's. */
  #tag(info: StreamInfo, writeGiven: (sink: TagSink) => void): void {
    const { tracer, tags, tagSettings } = this.#settings;
    const { redactedNames } = tagSettings;
    const ofRoute = info.route?.tracing?.tags ?? noTags;
    if (this.#replacesGiven || ofRoute.some(replacesGiven)) {
      const kept = new KeptTags();
      writeGiven(kept);
      writeCustomTags(ofRoute, tags, info, redactedNames, kept);
      kept.writeTo(tracer);
      return;
    }
    writeGiven(tracer);
    writeCustomTags(ofRoute, tags, info, redactedNames, tracer);
  }
}

const noTags: readonly CustomTag[] = [];

function replacesGiven({ name }: CustomTag): boolean {
  return givenTagNames.has(name);
}

function writeCustomTags(
  ofRoute: readonly CustomTag[],
  tags: readonly CustomTag[],
  info: StreamInfo,
  redactedNames: RedactedNames,
  sink: TagSink,
): void {
  for (const tag of ofRoute) writeCustomTag(tag, info, redactedNames, sink);
  for (const tag of tags) {
    if (ofRoute.some(({ name }) => name === tag.name)) continue;
    writeCustomTag(tag, info, redactedNames, sink);
  }
}

/** The last tag of a name is the one that is written. */
class KeptTags implements TagSink {
  readonly #tags = new Map<string, string | bigint | number | boolean>();

  tag(key: string, value: string): void {
    this.#tags.set(key, value);
  }

  typedTag(key: string, value: bigint | number | boolean): void {
    this.#tags.set(key, value);
  }

  writeTo(sink: TagSink): void {
    for (const [key, value] of this.#tags) {
      if (typeof value === "string") sink.tag(key, value);
      else sink.typedTag(key, value);
    }
  }
}

const flagsOfResets: Readonly<Record<string, ResponseFlag>> = {
  connection_termination: "UC",
  protocol_error: "UPE",
  local_reset: "LR",
};

/** How a stream's last try has ended, which nobody told of (Envoy: `UpstreamRequest::resetStream`, `onResetStream`). */
function lastTryEnd(info: StreamInfo): TryEnd {
  const reset = /^upstream_reset_after_response_started\{(\w+)\}$/.exec(info.responseCodeDetails ?? "")?.[1];
  const isWhole = info.requestEndedMs >= 0 && info.upstreamResponseEndedMs >= 0;
  return {
    status: info.upstreamResponseStartedMs >= 0 ? info.responseCode : 0,
    flag: reset === undefined ? undefined : (flagsOfResets[reset] ?? "UR"),
    reason: reset?.replaceAll("_", " "),
    // Of what goes both ways, one had not come to its end.
    isCanceled: reset === undefined && !isWhole,
    isRetried: false,
  };
}

/** What is told of a try that another follows (OpenTelemetry's semantic conventions of HTTP). */
function retryAttributes({ tryCount }: ActiveSpan, { upstreamHost }: StreamInfo, end: TryEnd): SpanEvent["attributes"] {
  const outcome = end.status === 0 ? (end.reason ?? end.flag ?? "canceled") : String(end.status);
  return [
    ["http.request.resend_count", String(tryCount)],
    ["network.peer.address", upstreamHost?.addressText ?? ""],
    [end.status === 0 ? "error.type" : "http.response.status_code", outcome],
  ];
}

/** The content hash of the routes that decided: the control plane writes it. */
function revisionOf(info: StreamInfo): string | undefined {
  const metadata = info.route === undefined ? info.routelessHost : info.route.virtualHostMetadata;
  const tulle = metadata?.["tulle"] as { readonly revision?: unknown } | undefined;
  return typeof tulle?.revision === "string" ? tulle.revision : undefined;
}

const timeoutFlags = responseFlags.UT.bit | responseFlags.SI.bit | responseFlags.DT.bit | responseFlags.UMSDR.bit;
