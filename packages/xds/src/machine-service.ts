// How a machine that is no pod joins a mesh, tells how it is, and leaves: unary gRPC calls of JSON on the port where it
// also gets certificates and configuration. Ours: Istio's machines are made known by files that people copy.
import type { AdsTarget } from "./grpc-channel.ts";
import type { CallOnStream } from "./byte-stream.ts";
import { callUnary } from "./call-unary.ts";
import type { ClientTlsSource } from "./transport-security.ts";
import type { GrpcStatusName, UnaryAnswer, UnaryCall, UnaryHandlers } from "./unary-calls.ts";

const service = "/tulle.machines.v1.Machines";

export interface JoinRequest {
  /** Of the token: what it is found by, and what proves it. */
  readonly tokenId: string;
  readonly secret: string;
  readonly csrPem: string;
  /** Where it is reached, when that is not where the call comes from. */
  readonly address?: string;
  readonly hostname: string;
}

export interface JoinAnswer {
  /** The machine's own from now on, as a pod has one. */
  readonly name: string;
  readonly namespace: string;
  readonly group: string;
  readonly serviceAccount: string;
  readonly trustDomain: string;
  readonly clusterId: string;
  /** PEM, the leaf first; the last one holds all roots. */
  readonly certChain: readonly string[];
}

/** Proved by the machine's certificate, as the next. */
export interface ReportRequest {
  readonly address?: string;
  readonly isReady: boolean;
  /** Why not. */
  readonly reason?: string;
  /** It stops, and comes again: the entry goes at once. */
  readonly isStopping?: boolean;
}

/** A WorkloadGroup's probe, as it is written there. */
export interface MachineProbe {
  readonly initialDelaySeconds?: number;
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly httpGet?: {
    readonly path?: string;
    readonly port: number;
    readonly host?: string;
    readonly scheme?: string;
    readonly httpHeaders?: readonly { readonly name: string; readonly value?: string }[];
  };
  readonly tcpSocket?: { readonly host?: string; readonly port: number };
  readonly exec?: { readonly command: readonly string[] };
  readonly grpc?: { readonly port: number; readonly service?: string };
}

export interface ReportAnswer {
  /** Name of its WorkloadEntry; empty while it has none. */
  readonly entry: string;
  /** Of the group as it is now. */
  readonly labels: Readonly<Record<string, string>>;
  readonly network?: string;
  readonly locality?: string;
  readonly probe?: MachineProbe;
  /** It has left, or was removed: it is to stop, and its certificate is worth nothing. */
  readonly isGone?: true;
}

export type MachineAnswer<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly status: GrpcStatusName; readonly details: string };

type Answering<Value> = MachineAnswer<Value> | Promise<MachineAnswer<Value>>;
type Caller = Pick<UnaryCall, "peer" | "peerIdentity">;

export interface MachineHandlers {
  readonly join: (request: JoinRequest, caller: Caller) => Answering<JoinAnswer>;
  readonly report: (request: ReportRequest, caller: Caller) => Answering<ReportAnswer>;
  /** For good: its certificate is worth nothing afterwards. */
  readonly leave: (caller: Caller) => Answering<object>;
}

/** For `unaryHandlers` of a server. */
export function machineService(handlers: MachineHandlers): UnaryHandlers {
  return {
    [`${service}/Join`]: (call) => answered(call, parseJoin, handlers.join),
    [`${service}/Report`]: (call) => answered(call, parseReport, handlers.report),
    [`${service}/Leave`]: (call) =>
      answered(
        call,
        (fields) => fields,
        (_request, caller) => handlers.leave(caller),
      ),
  };
}

/** A certificate request of RSA with 8192 bits has 3 KB. */
const maxRequestBytes = 16 * 1024;

type Fields = Readonly<Record<string, unknown>>;

async function answered<Request, Value>(
  call: UnaryCall,
  parse: (fields: Fields) => Request | undefined,
  handle: (request: Request, caller: Caller) => Answering<Value>,
): Promise<UnaryAnswer> {
  const fields = call.requestBytes.byteLength > maxRequestBytes ? undefined : parseFields(call.requestBytes);
  const request = fields && parse(fields);
  if (request === undefined) {
    return { ok: false, status: "INVALID_ARGUMENT", details: "the request is not what machines ask" };
  }
  const answer = await handle(request, call);
  return answer.ok ? { ok: true, bytes: Buffer.from(JSON.stringify(answer.value)) } : answer;
}

function parseFields(bytes: Uint8Array): Fields | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

const maxTextLength = 1024;

function isText(value: unknown, maxLength = maxTextLength): value is string {
  return typeof value === "string" && value.length <= maxLength;
}

function parseJoin({ tokenId, secret, csrPem, address, hostname }: Fields): JoinRequest | undefined {
  if (!isText(tokenId) || !isText(secret) || !isText(csrPem, maxRequestBytes) || !isText(hostname)) return undefined;
  if (address !== undefined && !isText(address)) return undefined;
  return { tokenId, secret, csrPem, hostname, ...(address === undefined ? {} : { address }) };
}

function parseReport({ address, isReady, reason, isStopping }: Fields): ReportRequest | undefined {
  if (typeof isReady !== "boolean" || (address !== undefined && !isText(address))) return undefined;
  if (reason !== undefined && !isText(reason)) return undefined;
  return {
    isReady,
    ...(address === undefined ? {} : { address }),
    ...(reason === undefined ? {} : { reason }),
    ...(isStopping === true ? { isStopping } : {}),
  };
}

interface Asking {
  /** `https://host:port`. */
  readonly target: AdsTarget;
  readonly tls: ClientTlsSource;
  /** Of a stream that stands: of several control planes whoever has it is asked. Without one a connection is made. */
  readonly onStream?: ((request: CallOnStream) => Promise<UnaryAnswer> | undefined) | undefined;
}

const timeoutMs = 10_000;

/** As the next ones: asks once, and never rejects. */
export function joinMesh(asking: Asking, request: JoinRequest): Promise<MachineAnswer<JoinAnswer>> {
  return ask(asking, "Join", request);
}

export function reportMachine(asking: Asking, request: ReportRequest): Promise<MachineAnswer<ReportAnswer>> {
  return ask(asking, "Report", request);
}

export function leaveMesh(asking: Asking): Promise<MachineAnswer<object>> {
  return ask(asking, "Leave", {});
}

/** The answer is the control plane's, which has proved itself. */
async function ask<Value>(
  { target, tls, onStream }: Asking,
  method: string,
  request: object,
): Promise<MachineAnswer<Value>> {
  const call = { path: `${service}/${method}`, bytes: Buffer.from(JSON.stringify(request)), timeoutMs };
  const answer = await (onStream?.(call) ?? callUnary({ ...call, target, tls }));
  if (!answer.ok) return answer;
  const value = parseFields(answer.bytes);
  return value === undefined
    ? { ok: false, status: "INTERNAL", details: "the control plane's answer cannot be read" }
    : { ok: true, value: value as Value };
}
