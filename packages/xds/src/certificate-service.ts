// Istio's certificate service over gRPC (istio/api security/v1alpha1/ca.proto): how a workload asks for its
// certificate, and how the authority is asked.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { AdsTarget } from "./grpc-channel.ts";
import { callUnary } from "./call-unary.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "./generated/istio/v1/auth/ca_pb.ts";
import type { ClientTlsSource, PeerIdentity } from "./transport-security.ts";
import type { GrpcStatusName, UnaryAnswer, UnaryCall, UnaryHandlers } from "./unary-calls.ts";

const createCertificatePath = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

export interface CertificateCall {
  readonly csrPem: string;
  /** What the caller asks for; undefined for the authority's default. */
  readonly ttlMs: number | undefined;
  /** Of `authorization: Bearer …`; undefined when there is none. */
  readonly bearerToken: string | undefined;
  readonly peer: string;
  /** Undefined when the caller showed no certificate. */
  readonly peerIdentity: PeerIdentity | undefined;
  readonly peerCertificates: readonly Uint8Array[];
}

export type CertificateAnswer =
  /** PEM, the leaf first, then the authorities up to the root; Istio's clients take the last one for the root. */
  | { readonly ok: true; readonly certChain: readonly string[] }
  | { readonly ok: false; readonly status: GrpcStatusName; readonly details: string };

/** For `unaryHandlers` of a server. */
export function certificateService(sign: (call: CertificateCall) => Promise<CertificateAnswer>): UnaryHandlers {
  return { [createCertificatePath]: (call) => answer(call, sign) };
}

async function answer(
  call: UnaryCall,
  sign: (call: CertificateCall) => Promise<CertificateAnswer>,
): Promise<UnaryAnswer> {
  let request;
  try {
    request = fromBinary(IstioCertificateRequestSchema, call.requestBytes);
  } catch {
    return { ok: false, status: "INVALID_ARGUMENT", details: "not an IstioCertificateRequest" };
  }
  const { peer, peerIdentity, peerCertificates } = call;
  const signed = await sign({
    csrPem: request.csr,
    ttlMs: request.validityDuration > 0n ? Number(request.validityDuration) * 1000 : undefined,
    bearerToken: bearerToken(call.metadata("authorization")),
    peer,
    peerIdentity,
    peerCertificates,
  });
  if (!signed.ok) return signed;
  const response = create(IstioCertificateResponseSchema, { certChain: [...signed.certChain] });
  return { ok: true, bytes: toBinary(IstioCertificateResponseSchema, response) };
}

/** Several authorization values are no proof of anything. */
function bearerToken(values: readonly string[]): string | undefined {
  if (values.length !== 1) return undefined;
  return /^Bearer ([^\s]+)$/i.exec(values[0]!)?.[1];
}

export interface CreateCertificateRequest {
  /** `https://host:port`. */
  readonly target: AdsTarget;
  readonly tls: ClientTlsSource;
  readonly csrPem: string;
  /** Whole seconds count. Undefined asks for the authority's default. */
  readonly ttlMs?: number;
  /** A workload token; absent when the client's certificate proves who asks. */
  readonly bearerToken?: string;
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 10_000;

/** Asks the authority; never rejects. */
export async function createCertificate(request: CreateCertificateRequest): Promise<CertificateAnswer> {
  const { target, tls, csrPem, ttlMs = 0, bearerToken: token, timeoutMs = defaultTimeoutMs } = request;
  const message = create(IstioCertificateRequestSchema, {
    csr: csrPem,
    validityDuration: BigInt(Math.ceil(ttlMs / 1000)),
  });
  const answered = await callUnary({
    target,
    path: createCertificatePath,
    bytes: toBinary(IstioCertificateRequestSchema, message),
    metadata: token === undefined ? {} : { authorization: `Bearer ${token}` },
    tls,
    timeoutMs,
  });
  if (!answered.ok) return answered;
  try {
    return { ok: true, certChain: fromBinary(IstioCertificateResponseSchema, answered.bytes).certChain };
  } catch {
    return { ok: false, status: "INTERNAL", details: "not an IstioCertificateResponse" };
  }
}
