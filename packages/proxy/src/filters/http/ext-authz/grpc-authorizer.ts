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
import { fieldValue, utf8AsLatin1 } from "../../../http/header-value.ts";
import type { AsyncCall } from "../../../upstream/async-call.ts";
import type { Slot } from "../../../runtime/slot.ts";
import { callGrpc } from "../../../upstream/grpc-client.ts";
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
    return callGrpc(cluster, target, request, { timeoutMs, maxResponseBytes }, check.dataPath, (result) =>
      onOutcome(result.ok ? readResponse(result.message) : errorOutcome),
    );
  }
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
