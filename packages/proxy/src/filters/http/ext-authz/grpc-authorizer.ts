// Asks an authorizer over gRPC: envoy.service.auth.v3.Authorization/Check (ExtAuthz.grpc_service; Envoy:
// `GrpcClientImpl`).
import { fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import {
  type HeaderValueOption,
  HeaderValueOption_HeaderAppendAction as AppendAction,
} from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type CheckResponse,
  CheckRequestSchema,
  CheckResponseSchema,
} from "@tulle/xds/envoy/service/auth/v3/external_auth_pb";
import type { Cluster } from "../../../cluster/cluster.ts";
import { grpcStatuses, grpcStatusOfHttp } from "../../../http/grpc-status.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import { fieldValue, utf8AsLatin1 } from "../../../http/header-value.ts";
import type { AsyncCall } from "../../../upstream/async-call.ts";
import type { Slot } from "../../../runtime/slot.ts";
import { CallSpan, type CallEnd } from "../../../tracing/call-span.ts";
import { callGrpc, type GrpcResult } from "../../../upstream/grpc-client.ts";
import type { GrpcTarget } from "../../../http/grpc-target.ts";
import {
  type Allowed,
  type AuthorizationOutcome,
  errorOutcome,
  type HeaderPair,
  type ResponseHeaderAction,
} from "./authorization-outcome.ts";
import { attributesOf, type AttributeSettings } from "./check-attributes.ts";
import type { CheckOutcomeListener, CheckRequest } from "./check-request.ts";
import type { Authorizer } from "./ext-authz-config.ts";

export interface GrpcAuthorizerConfig {
  readonly cluster: Slot<Cluster>;
  readonly target: GrpcTarget;
  readonly timeoutMs: number;
  readonly attributes: AttributeSettings;
}

const checkPath = "/envoy.service.auth.v3.Authorization/Check";
const maxResponseBytes = 1024 * 1024;
const forbidden = 403;

export class GrpcAuthorizer implements Authorizer {
  readonly #config: GrpcAuthorizerConfig;

  constructor(config: GrpcAuthorizerConfig) {
    this.#config = config;
  }

  check(check: CheckRequest, onOutcome: CheckOutcomeListener): AsyncCall {
    const { cluster, target, timeoutMs, attributes } = this.#config;
    const message = toBinary(CheckRequestSchema, attributesOf(check, attributes));
    const request = { path: checkPath, message };
    const span = CallSpan.begin(check.info, check.dataPath);
    const asked = span === undefined ? target : tracedTarget(target, span);
    const call = callGrpc(cluster, asked, request, { timeoutMs, maxResponseBytes }, check.dataPath, (result) => {
      const outcome = result.ok ? readResponse(result.message) : errorOutcome;
      span?.end(endOf(target, result, outcome));
      onOutcome(outcome);
    });
    if (span === undefined) return call;
    const cancel = (): void => {
      call.cancel();
      span.end(endOf(target, undefined, errorOutcome));
    };
    return { cancel };
  }
}

function tracedTarget(target: GrpcTarget, span: CallSpan): GrpcTarget {
  const context = new HeaderMap();
  span.inject(context);
  const { entries } = context;
  const pairs = Array.from(
    { length: entries.length / 2 },
    (_, at) => [entries[2 * at]!, entries[2 * at + 1]!] as const,
  );
  return { ...target, metadata: [...target.metadata, ...pairs] };
}

/** Of the call's span; without a result it was given up. */
function endOf(target: GrpcTarget, result: GrpcResult | undefined, outcome: AuthorizationOutcome): CallEnd {
  const grpcStatus = result === undefined ? undefined : statusOf(result);
  return {
    name: checkPath.slice(1).replace("/", "."),
    status: 0,
    grpcStatus,
    isCanceled: result === undefined,
    tags: [
      ["upstream_cluster", target.clusterName],
      ["upstream_address", target.authority],
      grpcStatus === undefined ? ["status", "canceled"] : ["grpc.status_code", String(grpcStatus)],
      ...(outcome.kind === "error" ? [] : ([["ext_authz_status", outcomeTags[outcome.kind]]] as const)),
    ],
  };
}

const outcomeTags = { allowed: "ext_authz_ok", denied: "ext_authz_unauthorized" } as const;

function statusOf(result: GrpcResult): number {
  if (result.ok) return 0;
  const [, kind, status] = /^(gRPC status|status) (\d+)$/.exec(result.reason) ?? [];
  if (status === undefined) return grpcStatuses.unavailable;
  return kind === "status" ? grpcStatusOfHttp(Number(status)) : Number(status);
}

function readResponse(bytes: Buffer): AuthorizationOutcome {
  try {
    return outcomeOf(fromBinary(CheckResponseSchema, bytes));
  } catch {
    return errorOutcome;
  }
}

function outcomeOf({ status, httpResponse, dynamicMetadata }: CheckResponse): AuthorizationOutcome {
  const isAllowed = (status?.code ?? 0) === 0;
  const metadata = metadataOf(dynamicMetadata);
  if (httpResponse.case === "errorResponse") return errorOutcome;
  if (!isAllowed) {
    const denied = httpResponse.case === "deniedResponse" ? httpResponse.value : undefined;
    return {
      kind: "denied",
      status: denied?.status?.code || forbidden,
      // Those that ask to be appended find nothing to be appended to, in Envoy as here.
      headers: (denied?.headers ?? []).filter(({ append }) => append !== true).flatMap(pairOf),
      body: Buffer.from(denied?.body ?? "", "utf8"),
      metadata,
    };
  }
  const ok = httpResponse.case === "okResponse" ? httpResponse.value : undefined;
  if (ok === undefined) return { ...nothingChanged, metadata };
  return {
    kind: "allowed",
    set: ok.headers.filter((option) => option.append !== true).flatMap(pairOf),
    append: ok.headers.filter((option) => option.append === true).flatMap(pairOf),
    add: [],
    remove: ok.headersToRemove.map((name) => name.toLowerCase()),
    response: ok.responseHeadersToAdd.flatMap((option) =>
      pairOf(option).map((header) => ({ action: responseAction(option), header })),
    ),
    setParameters: ok.queryParametersToSet.map(({ key, value }) => [key, fieldValue(value)] as const),
    removeParameters: ok.queryParametersToRemove,
    metadata: metadata ?? metadataOf(ok.dynamicMetadata),
  };
}

const nothingChanged: Omit<Allowed, "metadata"> = {
  kind: "allowed",
  set: [],
  append: [],
  add: [],
  remove: [],
  response: [],
  setParameters: [],
  removeParameters: [],
};

function metadataOf(struct: JsonObject | undefined): JsonObject | undefined {
  return struct === undefined || Object.keys(struct).length === 0 ? undefined : struct;
}

/**
 * What could not stand in a head is left out: the authorizer is trusted with what it says, not with where lines end.
 */
const fieldName = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;

function pairOf({ header }: HeaderValueOption): readonly HeaderPair[] {
  const name = header?.key.toLowerCase() ?? "";
  if (header === undefined || !fieldName.test(name)) return [];
  const { rawValue, value } = header;
  const text = rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : utf8AsLatin1(value);
  return [[name, fieldValue(text)]];
}

function responseAction({ append, appendAction }: HeaderValueOption): ResponseHeaderAction {
  if (append !== undefined) return append ? "add" : "set";
  switch (appendAction) {
    case AppendAction.ADD_IF_ABSENT:
      return "add_if_absent";
    case AppendAction.OVERWRITE_IF_EXISTS_OR_ADD:
      return "set";
    case AppendAction.OVERWRITE_IF_EXISTS:
      return "set_if_present";
    default:
      return "add";
  }
}
