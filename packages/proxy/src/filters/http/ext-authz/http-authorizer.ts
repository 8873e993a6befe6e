// Asks an authorizer over HTTP: the request's own method and path, the headers that it may see, and its answer's status
// decides (ExtAuthz.http_service; Envoy: `RawHttpClientImpl`).
import type { Cluster } from "../../../cluster/cluster.ts";
import type { TextFormat } from "../../../format/substitution-format.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import { fieldValue } from "../../../http/header-value.ts";
import { ownRequestProtocol } from "../../../http/message.ts";
import { reasonPhrase } from "../../../http/reason-phrase.ts";
import type { Slot } from "../../../runtime/slot.ts";
import type { AsyncCall } from "../../../upstream/async-call.ts";
import { CallSpan, type CallEnd } from "../../../tracing/call-span.ts";
import {
  type AsyncResponse,
  type AsyncResult,
  type AsyncRetries,
  sendAsyncRequest,
} from "../../../upstream/async-client.ts";
import { type AuthorizationOutcome, errorOutcome, type HeaderPair } from "./authorization-outcome.ts";
import type { CheckOutcomeListener, CheckRequest } from "./check-request.ts";
import type { Authorizer } from "./ext-authz-config.ts";

export type HeaderTest = (name: string) => boolean;

export interface HttpAuthorizerConfig {
  readonly cluster: Slot<Cluster>;
  readonly timeoutMs: number;
  readonly retries: AsyncRetries | undefined;
  readonly pathPrefix: string;
  /** In the place of the request's path; undefined = that. */
  readonly pathOverride: string | undefined;
  readonly added: readonly { readonly name: string; readonly format: TextFormat }[];
  /** Headers of the answer that go on: to the application, by replacing or appending, and to the client. */
  readonly toUpstream: HeaderTest;
  readonly toUpstreamAppended: HeaderTest;
  readonly toClientWhenDenied: HeaderTest;
  readonly toClientWhenAllowed: HeaderTest;
  readonly toMetadata: HeaderTest;
}

/** Names headers that the application shall not get. */
const removeHeader = "x-envoy-auth-headers-to-remove";

/** An authorizer's answer is a page at most. */
const maxResponseBytes = 1024 * 1024;

export class HttpAuthorizer implements Authorizer {
  readonly #config: HttpAuthorizerConfig;

  constructor(config: HttpAuthorizerConfig) {
    this.#config = config;
  }

  check(check: CheckRequest, onOutcome: CheckOutcomeListener): AsyncCall {
    const { cluster, timeoutMs, retries, pathPrefix, pathOverride, added } = this.#config;
    const headers = new HeaderMap();
    for (const [name, value] of check.headers) {
      // The body that is sent decides; the others stand in the request line and in Host.
      if (!name.startsWith(":") && name !== "content-length") headers.append(name, value);
    }
    for (const { name, format } of added) headers.set(name, fieldValue(format(check.info, check.request, undefined)));
    const span = CallSpan.begin(check.info, check.dataPath);
    span?.inject(headers);
    const { method, authority, path } = check.request;
    const request = {
      method,
      scheme: "http",
      authority,
      path: pathOverride ?? pathPrefix + path,
      headers,
      body: check.body?.bytes ?? Buffer.alloc(0),
    } as const;
    const options = { timeoutMs, maxResponseBytes, retries };
    const call = sendAsyncRequest(cluster, request, options, check.dataPath, (result) => {
      span?.end(endOf(cluster, result));
      onOutcome(result.ok ? this.#outcome(result.response) : errorOutcome);
    });
    if (span === undefined) return call;
    const cancel = (): void => {
      call.cancel();
      span.end(endOf(cluster, undefined));
    };
    return { cancel };
  }

  #outcome({ status, headers, body }: AsyncResponse): AuthorizationOutcome {
    if (status >= 500) return errorOutcome;
    const { toUpstream, toUpstreamAppended, toClientWhenDenied, toClientWhenAllowed, toMetadata } = this.#config;
    const removed = headers.getJoined(removeHeader) ?? "";
    headers.remove(removeHeader);
    const found = Object.fromEntries(chosen(headers, toMetadata));
    const metadata = Object.keys(found).length === 0 ? undefined : found;
    if (status !== 200) return { kind: "denied", status, headers: chosen(headers, toClientWhenDenied), body, metadata };
    return {
      kind: "allowed",
      set: chosen(headers, toUpstream),
      append: [],
      add: chosen(headers, toUpstreamAppended),
      remove: removed.split(",").flatMap((name) => name.trim().toLowerCase() || []),
      response: chosen(headers, toClientWhenAllowed).map((header) => ({ action: "add", header })),
      setParameters: [],
      removeParameters: [],
      metadata,
    };
  }
}

/** Of the call's span; without a result it was given up. */
function endOf(cluster: Slot<Cluster>, result: AsyncResult | undefined): CallEnd {
  const { status, flags } = outcomeOf(result);
  const address = result?.host?.addressText;
  return {
    name: cluster.name,
    status,
    grpcStatus: undefined,
    isCanceled: result === undefined,
    tags: [
      ["upstream_cluster", cluster.name],
      ["upstream_cluster.name", cluster.current?.observabilityName ?? cluster.name],
      ["http.protocol", ownRequestProtocol],
      ...(address === undefined
        ? []
        : ([
            ["upstream_address", address],
            ["peer.address", address],
          ] as const)),
      ["http.status_code", String(status)],
      ["response_flags", flags],
      ...(result === undefined
        ? ([["canceled", "true"]] as const)
        : ([
            ["ext_authz_http_status", reasonPhrase(status)],
            ["ext_authz_status", status === 200 ? "ext_authz_ok" : "ext_authz_unauthorized"],
          ] as const)),
    ],
  };
}

/** What Envoy's own answer to such a failure says. */
function outcomeOf(result: AsyncResult | undefined): { readonly status: number; readonly flags: string } {
  if (result === undefined) return { status: 0, flags: "-" };
  if (result.ok) return { status: result.response.status, flags: "-" };
  switch (result.failure) {
    case "upstream_response_timeout":
      return { status: 504, flags: "UT" };
    case "cluster_not_found":
    case "no_healthy_upstream":
      return { status: 503, flags: "UH" };
    case "response_too_large":
      return { status: 0, flags: "-" };
    default:
      return { status: 503, flags: /connection_(failure|timeout)/.test(result.failure) ? "UF" : "UC" };
  }
}

function chosen({ entries }: HeaderMap, test: HeaderTest): readonly HeaderPair[] {
  const pairs: HeaderPair[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    if (test(entries[index]!)) pairs.push([entries[index]!, entries[index + 1]!]);
  }
  return pairs;
}
