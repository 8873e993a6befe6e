// One unary gRPC call of opaque messages, on a connection of its own.
import type { Client, ServiceError } from "@grpc/grpc-js";
import { type AdsTarget, openChannel } from "./grpc-channel.ts";
import { loadGrpc } from "./load-grpc.ts";
import type { ClientTlsSource } from "./transport-security.ts";
import type { GrpcStatusName, UnaryAnswer } from "./unary-calls.ts";

export interface UnaryRequest {
  readonly target: AdsTarget;
  /** `/package.Service/Method`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Keys in lower case. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly tls?: ClientTlsSource;
  /** From the connection's beginning to the answer's end. */
  readonly timeoutMs: number;
  readonly maxMessageBytes?: number;
}

const defaultMaxMessageBytes = 1024 * 1024;

/** Never rejects: a connection that fails is an answer with status UNAVAILABLE and the reason. */
export async function callUnary(request: UnaryRequest): Promise<UnaryAnswer> {
  const { target, tls, timeoutMs } = request;
  const limits = {
    maxMessageBytes: request.maxMessageBytes ?? defaultMaxMessageBytes,
    keepAliveIntervalMs: timeoutMs,
    keepAliveTimeoutMs: timeoutMs,
  };
  let client;
  try {
    client = await openChannel(target, limits, tls?.());
  } catch (error) {
    return { ok: false, status: "UNAVAILABLE", details: error instanceof Error ? error.message : String(error) };
  }
  const answer = await callOver(client, request);
  client.close();
  return answer;
}

/** On a connection that is there, beside what else goes on there. Never rejects. */
export async function callOver(
  client: Client,
  { path, bytes, metadata = {}, timeoutMs }: Pick<UnaryRequest, "path" | "bytes" | "metadata" | "timeoutMs">,
): Promise<UnaryAnswer> {
  const grpc = await loadGrpc();
  const { promise, resolve } = Promise.withResolvers<UnaryAnswer>();
  const headers = new grpc.Metadata();
  for (const [name, value] of Object.entries(metadata)) headers.set(name, value);
  client.makeUnaryRequest(
    path,
    (value: Uint8Array) => Buffer.from(value.buffer, value.byteOffset, value.byteLength),
    (value: Buffer) => value,
    bytes,
    headers,
    { deadline: Date.now() + timeoutMs },
    (error: ServiceError | null, value?: Buffer) =>
      resolve(
        error === null
          ? { ok: true, bytes: value ?? Buffer.alloc(0) }
          : { ok: false, status: grpc.status[error.code] as GrpcStatusName, details: error.details },
      ),
  );
  return promise;
}
