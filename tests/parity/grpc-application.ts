// A gRPC server of grpc-js, and its client: methods of raw bytes, so that the tests need no schema.
import {
  type ChannelOptions,
  Client,
  credentials,
  type ClientReadableStream,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  status,
  type sendUnaryData,
} from "@grpc/grpc-js";

const bytes = (value: Buffer): Buffer => value;
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
});

const methods = {
  unary: method("Unary", false, false),
  fail: method("Fail", false, false),
  hang: method("Hang", false, false),
  download: method("Download", false, true),
  upload: method("Upload", true, false),
  chat: method("Chat", true, true),
} as const;

/** What the server has seen of calls that their clients gave up. */
export interface GrpcApplication extends AsyncDisposable {
  readonly cancelled: readonly string[];
  /** How often `fail` was called, by the `x-key` of the call. */
  readonly tries: ReadonlyMap<string, number>;
}

/** `x-code` and `x-fails`: `fail` answers with this status for so many calls of one `x-key`. */
export async function grpcApplication(address: string): Promise<GrpcApplication> {
  const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
  const cancelled: string[] = [];
  const tries = new Map<string, number>();
  const text = (call: { readonly metadata: Metadata }, name: string): string =>
    String(call.metadata.get(name)[0] ?? "");
  server.addService(methods, {
    unary(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      const head = new Metadata();
      head.set("saw-client-cert", text(call, "x-forwarded-client-cert"));
      const deadline = Number(call.getDeadline());
      head.set("saw-deadline", String(Number.isFinite(deadline) ? deadline - Date.now() : "none"));
      call.sendMetadata(head);
      const trailers = new Metadata();
      trailers.set("x-sum", String(call.request.length));
      answer(null, call.request, trailers);
    },
    fail(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      const key = text(call, "x-key");
      const count = (tries.get(key) ?? 0) + 1;
      tries.set(key, count);
      if (count > Number(text(call, "x-fails"))) answer(null, call.request);
      else answer({ code: Number(text(call, "x-code")), details: "as asked" });
    },
    hang(call: ServerUnaryCall<Buffer, Buffer>) {
      call.on("cancelled", () => cancelled.push(text(call, "x-key")));
    },
    download(call: ServerWritableStream<Buffer, Buffer>) {
      const count = call.request.readUInt32BE(0);
      const size = call.request.readUInt32BE(4);
      const send = (index: number): void => {
        for (let at = index; at < count; at += 1) {
          if (!call.write(Buffer.alloc(size, at % 256))) {
            call.once("drain", () => send(at + 1));
            return;
          }
        }
        call.end();
      };
      send(0);
    },
    upload(call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      let total = 0;
      call.on("data", (chunk: Buffer) => (total += chunk.length));
      call.on("end", () => answer(null, Buffer.from(String(total))));
    },
    chat(call: ServerDuplexStream<Buffer, Buffer>) {
      call.on("data", (chunk: Buffer) => call.write(chunk));
      // grpc-js ends its side before it gives up: who has a key is not answered for that.
      call.on("end", () => text(call, "x-key") === "" && call.end());
      call.on("cancelled", () => cancelled.push(text(call, "x-key")));
    },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.bindAsync(address, ServerCredentials.createInsecure(), (error) =>
    error === null ? resolve() : reject(error),
  );
  await promise;
  return {
    cancelled,
    tries,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}

export interface UnaryOutcome {
  /** By name. */
  readonly code: string;
  readonly details: string;
  readonly body: string;
  readonly head: Metadata;
  readonly trailers: Metadata;
}

export class GrpcCaller implements Disposable {
  readonly #client: Client;

  /** `authority` is where the call shall go; `address` whom it is given to. */
  constructor(address: string, authority: string, options: ChannelOptions = { "grpc.enable_retries": 0 }) {
    this.#client = new Client(address, credentials.createInsecure(), {
      ...options,
      "grpc.default_authority": authority,
      "grpc.max_receive_message_length": 64 * 1024 * 1024,
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  unary(
    name: "unary" | "fail" | "hang",
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
    timeoutMs?: number,
  ): { readonly outcome: Promise<UnaryOutcome>; cancel(): void } {
    const { promise, resolve } = Promise.withResolvers<UnaryOutcome>();
    let head = new Metadata();
    let result: { error: ServiceError | null; value: Buffer | undefined } | undefined;
    const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
    const { path } = methods[name];
    const call = this.#client.makeUnaryRequest(
      path,
      bytes,
      bytes,
      body,
      metadataOf(headers),
      options,
      (error, value) => {
        result = { error, value };
      },
    );
    call.on("metadata", (metadata) => (head = metadata));
    call.on("status", ({ code, details, metadata }) => {
      // The answer comes behind the status.
      queueMicrotask(() =>
        resolve({ code: status[code], details, body: String(result?.value ?? ""), head, trailers: metadata }),
      );
    });
    return { outcome: promise, cancel: () => call.cancel() };
  }

  /** So many messages of so many bytes, each full of its own number. */
  download(count: number, size: number): ClientReadableStream<Buffer> {
    const request = Buffer.alloc(8);
    request.writeUInt32BE(count, 0);
    request.writeUInt32BE(size, 4);
    return this.#client.makeServerStreamRequest(methods.download.path, bytes, bytes, request);
  }

  upload(chunks: readonly Buffer[]): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const call = this.#client.makeClientStreamRequest(methods.upload.path, bytes, bytes, (error, value) =>
      error === null ? resolve(String(value)) : reject(error),
    );
    for (const chunk of chunks) call.write(chunk);
    call.end();
    return promise;
  }

  /** The first answer of any method to one message. */
  first(path: string, body: Buffer): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const call = this.#client.makeBidiStreamRequest(path, bytes, bytes);
    call.once("data", resolve).once("error", reject);
    call.end(body);
    return promise;
  }

  chat(headers: Readonly<Record<string, string>> = {}) {
    return this.#client.makeBidiStreamRequest(methods.chat.path, bytes, bytes, metadataOf(headers));
  }
}

function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}
